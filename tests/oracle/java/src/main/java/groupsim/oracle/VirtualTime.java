package groupsim.oracle;

import org.apache.kafka.common.utils.Time;

/** Kafka's clock, moved by commands only. Unit: milliseconds. */
final class VirtualTime implements Time {
    private long nowMs;

    VirtualTime(long nowMs) {
        this.nowMs = nowMs;
    }

    void moveTo(long timeMs) {
        nowMs = Math.max(nowMs, timeMs);
    }

    @Override
    public long milliseconds() {
        return nowMs;
    }

    @Override
    public long nanoseconds() {
        return nowMs * 1_000_000L;
    }

    @Override
    public void sleep(long ms) {
        throw new UnsupportedOperationException("nothing may sleep under the virtual clock");
    }
}
