package kubernetes

import (
	"slices"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// standing has the services with endpoints that take requests. Watches of slices and of pods come
// back one after the other when an API server was away: where the slices are ahead they name pods
// that aren't known yet, where they are behind pods that are no more. Neither empties a service: it
// has the time from when it keeps what it had; zero: it has endpoints of its own.
type standing map[unit]time.Time

// lingering is how long a service keeps the endpoints that it had. Until a watch is tried again a
// minute may pass: client-go waits for 30 seconds, and for up to as long again.
const lingering = 90 * time.Second

// judge reports whether a service keeps the endpoints that it had, as those that were made of it
// now take no requests and some were left out for pods that are unknown. turned reports whether
// that begins or is given up now.
func (s standing) judge(u unit, made []*pb.Endpoint, unknown int, now time.Time) (keeps, turned bool) {
	since, stood := s[u]
	switch {
	case slices.ContainsFunc(made, takesRequests):
		s[u] = time.Time{}
	case !stood || unknown == 0:
		delete(s, u)
	case since.IsZero():
		s[u] = now
		return true, true
	case now.Sub(since) < lingering:
		return true, false
	default:
		delete(s, u)
		return false, true
	}
	return false, false
}

func takesRequests(e *pb.Endpoint) bool {
	return e.Health == pb.EndpointHealthReady || e.Health == pb.EndpointHealthHealthy
}
