package groupsim.oracle;

import java.net.InetAddress;
import java.net.UnknownHostException;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/** What the broker knows of a request besides its body. */
record Context(ApiKeys key, short version, String clientId, InetAddress clientAddress)
        implements AuthorizableRequestContext {

    /** {@code host} is a literal address; names are refused so that nothing is ever looked up. */
    static Context of(ApiKeys key, short version, String clientId, String host) {
        if (!host.matches("[0-9.]+|[0-9a-fA-F]*:[0-9a-fA-F:.]*")) {
            throw new CommandError("client_host must be a literal address, not " + host);
        }
        try {
            return new Context(key, version, clientId, InetAddress.getByName(host));
        } catch (UnknownHostException e) {
            throw new CommandError("client_host is not an address: " + host);
        }
    }

    @Override
    public int requestType() {
        return key.id;
    }

    @Override
    public int requestVersion() {
        return version;
    }

    @Override
    public String listenerName() {
        return "PLAINTEXT";
    }

    @Override
    public SecurityProtocol securityProtocol() {
        return SecurityProtocol.PLAINTEXT;
    }

    @Override
    public KafkaPrincipal principal() {
        return KafkaPrincipal.ANONYMOUS;
    }

    @Override
    public int correlationId() {
        return 0;
    }
}
