package live

import (
	"net"
	"strconv"
	"sync"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	secretv3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/anypb"
)

const secretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// agent is what runs beside an Envoy: it passes ADS on to the control plane, as it is but for code
// (withoutCode), and serves secrets, those that the control plane would serve to somebody it knows,
// too.
type agent struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	secretv3.UnimplementedSecretDiscoveryServiceServer
	*conversation
	upstream    discoveryv3.AggregatedDiscoveryServiceClient
	certificate certificate
}

// startAgent starts one that listens on a Unix socket.
func startAgent(t *testing.T, socket, plane string, c certificate) *agent {
	t.Helper()
	conn, err := grpc.NewClient(plane, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{conversation: newConversation(), upstream: discoveryv3.NewAggregatedDiscoveryServiceClient(conn), certificate: c}
	s := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s, a)
	secretv3.RegisterSecretDiscoveryServiceServer(s, a)
	var ended sync.WaitGroup
	ended.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { s.Stop(); _ = conn.Close(); ended.Wait() })
	return a
}

// StreamAggregatedResources passes a stream on.
func (a *agent) StreamAggregatedResources(down grpc.BidiStreamingServer[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]) error {
	up, err := a.upstream.StreamAggregatedResources(down.Context())
	if err != nil {
		return err
	}
	secrets := a.secrets()
	note := func(r *discoveryv3.DiscoveryResponse) {
		a.answered(r)
		for i, resource := range r.Resources {
			r.Resources[i] = withoutCode(resource)
		}
	}
	return pass(down, up, note, func(r *discoveryv3.DiscoveryRequest) (*discoveryv3.DiscoveryResponse, bool) {
		if r.TypeUrl == secretType {
			return secrets(r), true
		}
		a.asked(r)
		return nil, false
	})
}

// DeltaAggregatedResources passes a stream on.
func (a *agent) DeltaAggregatedResources(down grpc.BidiStreamingServer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]) error {
	up, err := a.upstream.DeltaAggregatedResources(down.Context())
	if err != nil {
		return err
	}
	note := func(r *discoveryv3.DeltaDiscoveryResponse) {
		a.answeredDelta(r)
		for _, resource := range r.Resources {
			resource.Resource = withoutCode(resource.Resource)
		}
	}
	return pass(down, up, note, func(r *discoveryv3.DeltaDiscoveryRequest) (*discoveryv3.DeltaDiscoveryResponse, bool) {
		if r.TypeUrl == secretType {
			return a.deltaSecrets(r), true
		}
		a.askedDelta(r)
		return nil, false
	})
}

// pass carries requests up, except for those that own answers, and answers down when note has seen
// them, until one side ends.
func pass[Q, A any](down grpc.BidiStreamingServer[Q, A], up grpc.BidiStreamingClient[Q, A], note func(*A), own func(*Q) (*A, bool)) error {
	var sending sync.Mutex
	send := func(answer *A) error {
		sending.Lock()
		defer sending.Unlock()
		return down.Send(answer)
	}
	ended := make(chan error, 2)
	go func() {
		for {
			answer, err := up.Recv()
			if err == nil {
				note(answer)
				err = send(answer)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	go func() {
		for {
			request, err := down.Recv()
			if err == nil {
				if answer, mine := own(request); !mine {
					err = up.Send(request)
				} else if answer != nil {
					err = send(answer)
				}
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	return <-ended
}

// StreamSecrets serves secrets alone.
func (a *agent) StreamSecrets(down grpc.BidiStreamingServer[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]) error {
	secrets := a.secrets()
	for {
		r, err := down.Recv()
		if err != nil {
			return err
		}
		if answer := secrets(r); answer != nil {
			if err := down.Send(answer); err != nil {
				return err
			}
		}
	}
}

// secrets answers the requests of one stream; nil to those that ask for nothing new.
func (a *agent) secrets() func(*discoveryv3.DiscoveryRequest) *discoveryv3.DiscoveryResponse {
	sent, nonce := map[string]bool{}, 0
	return func(r *discoveryv3.DiscoveryRequest) *discoveryv3.DiscoveryResponse {
		a.tookSecrets(r.GetErrorDetail().GetMessage())
		answer := &discoveryv3.DiscoveryResponse{VersionInfo: "1", TypeUrl: secretType}
		more := false
		for _, name := range r.ResourceNames {
			answer.Resources = append(answer.Resources, a.secret(name))
			more = more || !sent[name]
			sent[name] = true
		}
		if !more {
			return nil
		}
		nonce++
		answer.Nonce = strconv.Itoa(nonce)
		return answer
	}
}

func (a *agent) deltaSecrets(r *discoveryv3.DeltaDiscoveryRequest) *discoveryv3.DeltaDiscoveryResponse {
	a.tookSecrets(r.GetErrorDetail().GetMessage())
	if len(r.ResourceNamesSubscribe) == 0 {
		return nil
	}
	answer := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: secretType, Nonce: "1"}
	for _, name := range r.ResourceNamesSubscribe {
		answer.Resources = append(answer.Resources, &discoveryv3.Resource{Name: name, Version: "1", Resource: a.secret(name)})
	}
	return answer
}

func (a *agent) secret(name string) *anypb.Any {
	packed, err := anypb.New(a.certificate.secret(name))
	if err != nil {
		panic(err)
	}
	return packed
}

func (a *agent) tookSecrets(complaint string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if complaint != "" {
		a.refused = append(a.refused, secretType+": "+complaint)
	}
}
