package reliability

import (
	"context"
	"fmt"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statusv3 "google.golang.org/genproto/googleapis/rpc/status"
)

const namePromise = "the stream is refused or served; no plugin's session ends, nobody else waits"

// nameTrials are clients whose names are too long or too many.
func nameTrials() []trial {
	long := []string{strings.Repeat("x", 2_000_000)}
	sotw := func(name string, requests func() []*discoveryv3.DiscoveryRequest) trial {
		return trial{name: name, promise: namePromise, do: func(w *world) { w.sotw(requests()...) }}
	}
	delta := func(name string, requests func() []*discoveryv3.DeltaDiscoveryRequest) trial {
		return trial{name: name, promise: namePromise, do: func(w *world) { w.delta(requests()...) }}
	}
	return []trial{
		sotw("name of 2 MB, SotW EDS", func() []*discoveryv3.DiscoveryRequest {
			return []*discoveryv3.DiscoveryRequest{{Node: strangerNode(), TypeUrl: eds, ResourceNames: long}}
		}),
		delta("name of 2 MB, delta RDS", func() []*discoveryv3.DeltaDiscoveryRequest {
			return []*discoveryv3.DeltaDiscoveryRequest{{Node: strangerNode(), TypeUrl: rds, ResourceNamesSubscribe: long}}
		}),
		delta("name of 2 MB, unsubscribed", func() []*discoveryv3.DeltaDiscoveryRequest {
			return []*discoveryv3.DeltaDiscoveryRequest{
				{Node: strangerNode(), TypeUrl: rds, ResourceNamesSubscribe: []string{"80"}}, {TypeUrl: rds, ResourceNamesUnsubscribe: long},
			}
		}),
		delta("name of 2 MB, as a version's", func() []*discoveryv3.DeltaDiscoveryRequest {
			return []*discoveryv3.DeltaDiscoveryRequest{{Node: strangerNode(), TypeUrl: cds, InitialResourceVersions: map[string]string{long[0]: "1"}}}
		}),
		delta("version of 2 MB", func() []*discoveryv3.DeltaDiscoveryRequest {
			return []*discoveryv3.DeltaDiscoveryRequest{{Node: strangerNode(), TypeUrl: cds, InitialResourceVersions: map[string]string{"a": long[0]}}}
		}),
		sotw("type URL of 2 MB", func() []*discoveryv3.DiscoveryRequest {
			return []*discoveryv3.DiscoveryRequest{{Node: strangerNode(), TypeUrl: "type.googleapis.com/" + long[0]}}
		}),
		sotw("5,000 type URLs", func() (all []*discoveryv3.DiscoveryRequest) {
			for i := range 5_000 {
				all = append(all, &discoveryv3.DiscoveryRequest{Node: strangerNode(), TypeUrl: fmt.Sprintf("type.googleapis.com/strange.T%d", i)})
			}
			return all
		}),
		sotw("100,000 names, SotW EDS", func() []*discoveryv3.DiscoveryRequest {
			return []*discoveryv3.DiscoveryRequest{{Node: strangerNode(), TypeUrl: eds, ResourceNames: unknown(100_000)}}
		}),
		delta("100,000 names, delta RDS", func() []*discoveryv3.DeltaDiscoveryRequest {
			return []*discoveryv3.DeltaDiscoveryRequest{{Node: strangerNode(), TypeUrl: rds, ResourceNamesSubscribe: unknown(100_000)}}
		}),
		delta("names without end, delta", func() (all []*discoveryv3.DeltaDiscoveryRequest) {
			for i := range 50 {
				r := &discoveryv3.DeltaDiscoveryRequest{Node: strangerNode(), TypeUrl: eds}
				for j := range 3_000 {
					r.ResourceNamesSubscribe = append(r.ResourceNamesSubscribe, fmt.Sprintf("%s-%d-%d", strings.Repeat("x", 1_000), i, j))
				}
				all = append(all, r)
			}
			return all
		}),
		{name: "20 streams of 100,000 names", promise: namePromise, do: func(w *world) { w.crowdOfNames(20, 100_000, func(int) string { return stranger }) }},
		{name: "20,000 names from 100 addresses", promise: namePromise, do: func(w *world) {
			w.crowdOfNames(100, 20_000, func(i int) string { return fmt.Sprintf("127.0.66.%d", i+1) })
		}},
		{
			name: "100,000 names from our address", promise: namePromise,
			do: func(w *world) { w.crowdOfNames(1, 100_000, func(int) string { return "127.0.0.1" }) },
		},
		{name: "stale nonces", promise: "memory stays bounded", do: staleNonces},
		{name: "refusals of 1 MB", promise: "memory stays bounded; no plugin's session ends", do: longRefusals},
	}
}

func unknown(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("outbound|80||unknown-%d.example", i)
	}
	return names
}

// crowdOfNames opens streams, each with names of its own that nobody knows.
func (w *world) crowdOfNames(streams, names int, from func(i int) string) {
	w.under(func(ctx context.Context, ready func()) {
		many(streams, func(i int) {
			ads := w.adsFrom(from(i))
			insist(ctx, func(ctx context.Context) {
				s, err := ads.StreamAggregatedResources(ctx)
				all := unknown(names)
				for j := range all {
					all[j] += fmt.Sprint(i)
				}
				_ = hold(s, err, []*discoveryv3.DiscoveryRequest{{Node: strangerNode(), TypeUrl: eds, ResourceNames: all}}, ready)
			})
		})
	})
}

// staleNonces sends requests that answer what was long superseded, on a stream with many names.
func staleNonces(w *world) {
	ads := w.ads()
	w.under(func(ctx context.Context, ready func()) {
		s, err := ads.StreamAggregatedResources(ctx)
		if err != nil {
			return
		}
		first := &discoveryv3.DiscoveryRequest{Node: strangerNode(), TypeUrl: eds, ResourceNames: unknown(100_000)}
		if s.Send(first) != nil {
			return
		}
		if _, err := s.Recv(); err != nil {
			return
		}
		go drain(s.Recv)
		for range 3_000 {
			if s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: eds, ResponseNonce: "stale", VersionInfo: "x"}) != nil {
				return
			}
		}
		ready()
		<-s.Context().Done()
	})
}

// longRefusals refuses each answer with a megabyte of reasons.
func longRefusals(w *world) {
	ads := w.ads()
	w.under(func(ctx context.Context, ready func()) {
		insist(ctx, func(ctx context.Context) {
			s, err := ads.StreamAggregatedResources(ctx)
			if err != nil || s.Send(&discoveryv3.DiscoveryRequest{Node: strangerNode(), TypeUrl: cds}) != nil {
				return
			}
			answer, err := s.Recv()
			if err != nil {
				return
			}
			reason := &statusv3.Status{Code: 3, Message: strings.Repeat("no ", 1<<20/3)}
			for range 300 {
				if s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: cds, ResponseNonce: answer.Nonce, ErrorDetail: reason}) != nil {
					return
				}
			}
			ready()
			drain(s.Recv)
		})
	})
}

// drain reads until there is no more.
func drain[T any](recv func() (T, error)) {
	for {
		if _, err := recv(); err != nil {
			return
		}
	}
}
