// Command legacy is the service as it was: a provider of Dubbo's, by its protocol Triple, which
// registers itself in ZooKeeper, by interface and by application.
package main

import (
	"context"
	"flag"
	"log"
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	_ "dubbo.apache.org/dubbo-go/v3/filter/accesslog"
	_ "dubbo.apache.org/dubbo-go/v3/filter/auth"
	_ "dubbo.apache.org/dubbo-go/v3/filter/echo"
	_ "dubbo.apache.org/dubbo-go/v3/filter/exec_limit"
	_ "dubbo.apache.org/dubbo-go/v3/filter/generic"
	_ "dubbo.apache.org/dubbo-go/v3/filter/graceful_shutdown"
	_ "dubbo.apache.org/dubbo-go/v3/filter/token"
	_ "dubbo.apache.org/dubbo-go/v3/filter/tps"
	_ "dubbo.apache.org/dubbo-go/v3/filter/tps/limiter"
	_ "dubbo.apache.org/dubbo-go/v3/filter/tps/strategy"
	"dubbo.apache.org/dubbo-go/v3/graceful_shutdown"
	_ "dubbo.apache.org/dubbo-go/v3/metadata/mapping/metadata"
	_ "dubbo.apache.org/dubbo-go/v3/metadata/report/zookeeper"
	"dubbo.apache.org/dubbo-go/v3/protocol"
	_ "dubbo.apache.org/dubbo-go/v3/protocol/triple"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	_ "dubbo.apache.org/dubbo-go/v3/proxy/proxy_factory"
	"dubbo.apache.org/dubbo-go/v3/registry"
	_ "dubbo.apache.org/dubbo-go/v3/registry/protocol"
	_ "dubbo.apache.org/dubbo-go/v3/registry/servicediscovery"
	_ "dubbo.apache.org/dubbo-go/v3/registry/zookeeper"
	"dubbo.apache.org/dubbo-go/v3/server"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func main() {
	zookeeper := flag.String("zookeeper", "127.0.0.1:2181", "HOST:PORT of ZooKeeper")
	port := flag.Int("port", 20000, "where it serves, on 127.0.0.1")
	flag.Parse()
	dubbo, err := dubbo.NewInstance(
		dubbo.WithName("greetings"),
		dubbo.WithRegistry(registry.WithZookeeper(), registry.WithAddress(*zookeeper), registry.WithRegisterServiceAndInterface()),
		dubbo.WithShutdown(graceful_shutdown.WithTimeout(5*time.Second),
			graceful_shutdown.WithStepTimeout(time.Second),
			graceful_shutdown.WithConsumerUpdateWaitTime(time.Second)),
		dubbo.WithProtocol(protocol.WithTriple(), protocol.WithIp("127.0.0.1"), protocol.WithPort(*port)),
	)
	if err != nil {
		log.Fatal(err)
	}
	s, err := dubbo.NewServer()
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Register(&Greetings{}, info); err != nil {
		log.Fatal(err)
	}
	// Dubbo takes itself out of ZooKeeper when it is asked to end.
	if err := s.Serve(); err != nil {
		log.Fatal(err)
	}
}

// Greeter is the service greet.Greeter; its messages are google.protobuf.StringValue.
type Greeter interface {
	Greet(context.Context, *wrapperspb.StringValue) (*wrapperspb.StringValue, error)
}

// Greetings implements it; Dubbo wants its name to be exported.
type Greetings struct{}

func (*Greetings) Greet(_ context.Context, name *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	return wrapperspb.String("hello " + name.GetValue() + ", from Dubbo"), nil
}

// info is what a generator makes of a .proto file.
var info = &server.ServiceInfo{
	InterfaceName: "greet.Greeter",
	ServiceType:   (*Greeter)(nil),
	Methods: []server.MethodInfo{{
		Name: "Greet", Type: constant.CallUnary,
		ReqInitFunc: func() any { return new(wrapperspb.StringValue) },
		MethodFunc: func(ctx context.Context, args []any, handler any) (any, error) {
			answer, err := handler.(Greeter).Greet(ctx, args[0].(*wrapperspb.StringValue))
			if err != nil {
				return nil, err
			}
			return triple_protocol.NewResponse(answer), nil
		},
	}},
}
