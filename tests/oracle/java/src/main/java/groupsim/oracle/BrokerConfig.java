package groupsim.oracle;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Broker configuration of one reset. Equal configurations are built once. */
record BrokerConfig(GroupCoordinatorConfig group, GroupConfigManager groupConfigs,
                    LogConfig offsetsLog) {
    // The one name taken here that GroupCoordinatorConfig does not define.
    private static final String MESSAGE_MAX_BYTES = "message.max.bytes";
    private static final int MESSAGE_MAX_BYTES_DEFAULT = 1048588;

    private static final int KEPT = 1024;
    private static final Map<JsonNode, BrokerConfig> BUILT =
        new LinkedHashMap<>(KEPT, 0.75f, true) {
            @Override
            protected boolean removeEldestEntry(Map.Entry<JsonNode, BrokerConfig> eldest) {
                return size() > KEPT;
            }
        };

    private static final Map<Object, LogConfig> LOGS = new HashMap<>();

    /** From a JSON object of Kafka's names; values may be strings, numbers or booleans. */
    static BrokerConfig from(JsonNode json) {
        BrokerConfig known = BUILT.get(json);
        if (known == null) {
            known = build(json);
            BUILT.put(json, known);
        }
        return known;
    }

    private static BrokerConfig build(JsonNode json) {
        Map<String, Object> props = new HashMap<>();
        // 0 instead of the default -1: each write operation is a batch of its own, at once.
        props.put(GroupCoordinatorConfig.GROUP_COORDINATOR_APPEND_LINGER_MS_CONFIG, "0");
        json.fields().forEachRemaining(field -> {
            String name = field.getKey();
            if (!name.equals(MESSAGE_MAX_BYTES)
                    && !GroupCoordinatorConfig.CONFIG_DEF.names().contains(name)) {
                throw new CommandError("unknown broker config " + name);
            }
            props.put(name, field.getValue().asText());
        });
        Object maxBytes = props.remove(MESSAGE_MAX_BYTES);
        try {
            GroupCoordinatorConfig group = GroupCoordinatorConfig.fromProps(props);
            GroupConfigManager groups =
                new GroupConfigManager(group, ShareGroupConfig.fromProps(Map.of()));
            LogConfig log = LOGS.computeIfAbsent(
                maxBytes == null ? MESSAGE_MAX_BYTES_DEFAULT : maxBytes,
                bytes -> new LogConfig(Map.of(TopicConfig.MAX_MESSAGE_BYTES_CONFIG, bytes)));
            return new BrokerConfig(group, groups, log);
        } catch (ConfigException | IllegalArgumentException e) {
            throw new CommandError(e.getClass().getSimpleName() + ": " + e.getMessage());
        }
    }
}
