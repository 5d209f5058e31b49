package groupsim.oracle;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;
import java.util.Arrays;

/**
 * Makes java.util.UUID.randomUUID() predictable. Kafka draws the random part of a member id there
 * (ClassicGroup.generateMemberId), and UUID draws 16 bytes from the first SecureRandom the
 * security providers offer. Ours serves, for the i-th draw after {@link #restart}, the MD5 digest
 * of the text "seed/i" (i counts from 0); UUID then sets the version and variant bits.
 */
final class MemberIds {
    private static final int UUID_BYTES = 16;
    private static final MessageDigest MD5 = md5();
    private static String seed = "";
    private static long draws = 0;

    private MemberIds() {
    }

    /** Installs the source. Must run before anything has drawn a UUID. */
    static void install() {
        Security.insertProviderAt(new Source(), 1);
    }

    static void restart(String newSeed) {
        seed = newSeed;
        draws = 0;
    }

    /** Number of UUIDs drawn since {@link #restart}. */
    static long draws() {
        return draws;
    }

    static byte[] digest(String text) {
        return MD5.digest(text.getBytes(StandardCharsets.UTF_8));
    }

    private static MessageDigest md5() {
        try {
            return MessageDigest.getInstance("MD5");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private static final class Source extends Provider {
        Source() {
            super("GroupsimOracle", "1", "predictable member ids");
            put("SecureRandom.GroupsimOracle", Digests.class.getName());
        }
    }

    /** Public with a public constructor because the security framework makes instances. */
    public static final class Digests extends SecureRandomSpi {
        public Digests() {
        }

        @Override
        protected void engineSetSeed(byte[] ignored) {
            // The seed comes from the reset command.
        }

        @Override
        protected void engineNextBytes(byte[] bytes) {
            if (bytes.length == UUID_BYTES) {
                System.arraycopy(digest(seed + "/" + draws++), 0, bytes, 0, UUID_BYTES);
            } else {
                // Not a UUID (a temporary file's name, say): any bytes will do, and none count.
                Arrays.fill(bytes, (byte) 0x5a);
            }
        }

        @Override
        protected byte[] engineGenerateSeed(int count) {
            return new byte[count];
        }
    }
}
