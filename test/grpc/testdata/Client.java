import com.google.gson.Gson;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/** A client of grpc-java that finds its servers by xDS (GRPC_XDS_BOOTSTRAP). languages_test.go says what it reads and prints. */
public class Client {
  static class Order {
    String target;
    int calls;
    Map<String, String> headers = Map.of();
  }

  static class Answer {
    Map<String, Integer> from = new TreeMap<>();
    int code;
    String details;
  }

  /** Requests are empty, answers a google.protobuf.StringValue whose text is short: a tag, a length, the text. */
  static final MethodDescriptor.Marshaller<String> TEXT = new MethodDescriptor.Marshaller<>() {
    @Override
    public InputStream stream(String value) {
      return new ByteArrayInputStream(new byte[0]);
    }

    @Override
    public String parse(InputStream raw) {
      try {
        byte[] all = raw.readAllBytes();
        return new String(all, 2, all.length - 2, StandardCharsets.UTF_8);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  };

  static final MethodDescriptor<String, String> WHO = MethodDescriptor.<String, String>newBuilder()
      .setType(MethodDescriptor.MethodType.UNARY).setFullMethodName("test.Echo/Who").setRequestMarshaller(TEXT).setResponseMarshaller(TEXT).build();

  public static void main(String[] args) throws IOException {
    Map<String, Channel> channels = new HashMap<>();
    Gson gson = new Gson();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      Order order = gson.fromJson(line, Order.class);
      Metadata headers = new Metadata();
      order.headers.forEach((k, v) -> headers.put(Metadata.Key.of(k, Metadata.ASCII_STRING_MARSHALLER), v));
      Channel channel = ClientInterceptors.intercept(
          channels.computeIfAbsent(order.target, t -> Grpc.newChannelBuilder("xds:///" + t, InsecureChannelCredentials.create()).build()),
          MetadataUtils.newAttachHeadersInterceptor(headers));
      Answer out = new Answer();
      for (int i = 0; i < order.calls && out.code == 0; i++) {
        try {
          out.from.merge(ClientCalls.blockingUnaryCall(channel, WHO, CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS), ""), 1, Integer::sum);
        } catch (StatusRuntimeException e) {
          out.code = e.getStatus().getCode().value();
          out.details = e.getStatus().getDescription();
        }
      }
      System.out.println(gson.toJson(out));
    }
    System.exit(0);
  }
}
