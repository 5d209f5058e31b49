package groupsim.oracle;

import java.util.function.Supplier;

import com.yammer.metrics.core.MetricsRegistry;

import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime.CoordinatorState;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntimeMetrics;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;

/** Metrics that decide nothing: the runtime's are dropped, the group's are shared by all resets. */
final class QuietMetrics implements CoordinatorRuntimeMetrics {
    private static final Shared SHARED = new Shared();

    static GroupCoordinatorMetrics group() {
        return SHARED;
    }

    private static final class Shared extends GroupCoordinatorMetrics {
        Shared() {
            // A clock that stands still, because virtual time starts again at every reset.
            super(new MetricsRegistry(), new Metrics(new VirtualTime(0)));
        }

        @Override
        public void close() {
            // Outlives every coordinator of this process.
        }
    }

    @Override
    public void recordPartitionStateChange(CoordinatorState from, CoordinatorState to) {
    }

    @Override
    public void recordPartitionLoadSensor(long startMs, long endMs) {
    }

    @Override
    public void recordEventQueueTime(long ms) {
    }

    @Override
    public void recordEventProcessingTime(long ms) {
    }

    @Override
    public void recordEventPurgatoryTime(long ms) {
    }

    @Override
    public void recordLingerTime(long ms) {
    }

    @Override
    public void recordFlushTime(long ms) {
    }

    @Override
    public void recordThreadIdleTime(double ms) {
    }

    @Override
    public void recordBackgroundQueueTime(long ms) {
    }

    @Override
    public void recordBackgroundProcessingTime(long ms) {
    }

    @Override
    public void recordBackgroundThreadBusyTime(double ms) {
    }

    @Override
    public void registerEventQueueSizeGauge(Supplier<Integer> size) {
    }

    @Override
    public void registerBufferCacheSizeGauge(Supplier<Long> size) {
    }

    @Override
    public void recordBufferCacheDiscarded() {
    }

    @Override
    public void close() {
    }
}
