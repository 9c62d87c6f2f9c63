package kubernetes

import (
	"slices"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// standing has the services with endpoints that take requests, and since when one keeps those that
// it had, as what was made of it now takes none; zero: it has endpoints of its own. When an API
// server was away slices come one after the other, so that endpoints have left one and are in no
// other yet. Pods come before slices or after them: slices that are ahead name pods that aren't
// known yet, those that are behind pods that are no more. None of it empties a service.
type standing map[unit]time.Time

// Time for which a service keeps the endpoints that it had.
const (
	// betweenSlices is where its slices name nobody: as long as istiod waits before it pushes.
	betweenSlices = 100 * time.Millisecond
	// unknownPods is where they name pods that are unknown. Until a watch is tried again a minute
	// may pass: client-go waits for 30 seconds, and for up to as long again.
	unknownPods = 90 * time.Second
)

// judge returns for how long a service keeps the endpoints that it had, since those that were made
// of it now take no requests; unknown of them were left out for pods that are unknown. Zero: it has
// what was made.
func (s standing) judge(u unit, made []*pb.Endpoint, unknown int, now time.Time) (left time.Duration) {
	since, stood := s[u]
	switch {
	case slices.ContainsFunc(made, takesRequests):
		s[u] = time.Time{}
		return 0
	case !stood:
		return 0
	case since.IsZero():
		since = now
	}
	left = betweenSlices
	if unknown > 0 {
		left = unknownPods
	}
	if left -= now.Sub(since); left <= 0 {
		delete(s, u)
		return 0
	}
	s[u] = since
	return left
}

func takesRequests(e *pb.Endpoint) bool {
	return e.Health == pb.EndpointHealthReady || e.Health == pb.EndpointHealthHealthy
}
