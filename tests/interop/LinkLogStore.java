import io.delta.storage.HadoopFileSystemLogStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;

/**
 * Puts an entry of the log on a local disk once, for many processes: a hard link fails where the name is taken.
 *
 * The store that the reference has for local disks looks whether the name is there, and then renames, which replaces:
 * between the two another process may have committed. What it does with entries is its own, only the put is not.
 */
public class LinkLogStore extends HadoopFileSystemLogStore {
  public LinkLogStore(Configuration hadoopConf) {
    super(hadoopConf);
  }

  public void write(org.apache.hadoop.fs.Path path, Iterator actions, Boolean overwrite, Configuration hadoopConf)
      throws IOException {
    Path target = new java.io.File(path.toUri().getPath()).toPath();
    Path draft = target.resolveSibling("." + target.getFileName() + "." + UUID.randomUUID() + ".tmp");
    StringBuilder text = new StringBuilder();
    while (actions.hasNext()) {
      text.append((String) actions.next()).append('\n');
    }
    Files.write(draft, text.toString().getBytes(StandardCharsets.UTF_8), new java.nio.file.OpenOption[0]);
    try {
      if (overwrite.booleanValue()) {
        Files.move(draft, target, new java.nio.file.CopyOption[] {StandardCopyOption.REPLACE_EXISTING});
      } else {
        Files.createLink(target, draft);
      }
    } finally {
      Files.deleteIfExists(draft);
    }
  }

  /** What is written otherwise, such as checkpoints, shall be renamed into place. */
  public Boolean isPartialWriteVisible(org.apache.hadoop.fs.Path path, Configuration hadoopConf) {
    return Boolean.TRUE;
  }
}
