import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** One node of OpenSearch: Server PORT FOLDER. Indexes whose names begin with "absent" are not made by writing to them. */
public final class Server {
  private static final class TestNode extends Node {
    TestNode(Settings settings) {
      super(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "test"), List.of(Netty4Plugin.class), false);
    }
  }

  public static void main(String[] arguments) throws Exception {
    Settings settings = Settings.builder()
        .put("path.home", arguments[1])
        .put("http.host", "127.0.0.1").put("http.port", arguments[0])
        .put("transport.host", "127.0.0.1").put("transport.port", "0")
        .put("discovery.type", "single-node").put("cluster.name", "test").put("node.name", "test")
        .put("action.auto_create_index", "-absent*,*").put("cluster.routing.allocation.disk.threshold_enabled", false)
        .build();
    Node node = new TestNode(settings);
    node.start();
    Thread.currentThread().join();
  }
}
