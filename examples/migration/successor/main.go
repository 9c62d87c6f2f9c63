// Command successor is the service as it is to be: an ordinary gRPC server, which registers itself
// at Consul.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const id = "greet-1"

func main() {
	consul := flag.String("consul", "http://127.0.0.1:8500", "URL of Consul")
	port := flag.Int("port", 50051, "where it serves, on 127.0.0.1")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *consul, *port); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, consul string, port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	s.RegisterService(&greeter, nil)
	healthpb.RegisterHealthServer(s, health.NewServer())
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	registration, err := json.Marshal(map[string]any{
		"ID": id, "Name": "greet", "Address": "127.0.0.1", "Port": port, "Meta": map[string]string{"protocol": "grpc", "version": "v2"},
		"Check": map[string]any{"GRPC": l.Addr().String(), "Interval": "1s", "Status": "passing"},
	})
	if err != nil {
		return err
	}
	if err := put(ctx, consul+"/v1/agent/service/register", registration); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Nobody is to find it any more when it stops.
	err = put(context.Background(), consul+"/v1/agent/service/deregister/"+id, nil)
	s.GracefulStop()
	return errors.Join(err, <-failed)
}

func put(ctx context.Context, url string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}

// greeter is what a generator makes of a .proto file: the service greet.Greeter, whose messages are
// google.protobuf.StringValue.
var greeter = grpc.ServiceDesc{
	ServiceName: "greet.Greeter", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		{MethodName: "Greet", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var name wrapperspb.StringValue
			if err := decode(&name); err != nil {
				return nil, err
			}
			return wrapperspb.String("hello " + name.GetValue() + ", from the successor"), nil
		}},
	},
}
