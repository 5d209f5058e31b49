package groupsim.oracle;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.TopicImage;

/**
 * The cluster's topics as a KRaft metadata image. The id of the n-th topic of a name (n counts from
 * 0 and grows when the name is used again) is the MD5 digest of "topic/name/n".
 */
final class Topics {
    private static final int BROKER = 0;

    private final Map<String, Integer> incarnations = new HashMap<>();
    private MetadataImage image = MetadataImage.EMPTY;
    private MetadataDelta delta = null;

    MetadataImage image() {
        return image;
    }

    /** Starts a change; {@link #commit} ends it and answers what changed. */
    void begin() {
        delta = new MetadataDelta.Builder().setImage(image).build();
    }

    MetadataDelta commit() {
        MetadataDelta done = delta;
        image = done.apply(new MetadataProvenance(image.offset() + 1, 0, 0, true));
        delta = null;
        return done;
    }

    /** Creates the topic, or adds partitions to it. Partitions cannot be taken away. */
    void set(String name, int partitions) {
        TopicImage existing = image.topics().getTopic(name);
        int first = existing == null ? 0 : existing.partitions().size();
        if (partitions < Math.max(first, 1)) {
            throw new CommandError("topic " + name + " cannot have " + partitions + " partitions");
        }
        Uuid id = existing == null ? newId(name) : existing.id();
        if (existing == null) {
            delta.replay(new TopicRecord().setName(name).setTopicId(id));
        }
        for (int partition = first; partition < partitions; partition++) {
            delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(partition)
                .setReplicas(List.of(BROKER)).setIsr(List.of(BROKER)).setLeader(BROKER));
        }
    }

    void remove(String name) {
        TopicImage existing = image.topics().getTopic(name);
        if (existing == null) {
            throw new CommandError("no such topic: " + name);
        }
        delta.replay(new RemoveTopicRecord().setTopicId(existing.id()));
    }

    private Uuid newId(String name) {
        int incarnation = incarnations.merge(name, 1, Integer::sum) - 1;
        ByteBuffer bytes = ByteBuffer.wrap(MemberIds.digest("topic/" + name + "/" + incarnation));
        return new Uuid(bytes.getLong(), bytes.getLong());
    }

    Optional<String> name(Uuid id) {
        return Optional.ofNullable(image.topics().getTopic(id)).map(TopicImage::name);
    }

    /** The topic's id, or the zero id as the broker's metadata cache answers for unknown names. */
    Uuid id(String name) {
        TopicImage topic = image.topics().getTopic(name);
        return topic == null ? Uuid.ZERO_UUID : topic.id();
    }

    boolean exists(String name) {
        return image.topics().getTopic(name) != null;
    }

    boolean exists(String name, int partition) {
        TopicImage topic = image.topics().getTopic(name);
        return topic != null && topic.partitions().containsKey(partition);
    }

    List<TopicImage> all() {
        List<TopicImage> topics = new ArrayList<>(image.topics().topicsByName().values());
        topics.sort((a, b) -> a.name().compareTo(b.name()));
        return topics;
    }
}
