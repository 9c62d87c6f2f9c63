package kubernetes

import (
	"slices"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// standing has the services with endpoints that take requests. Watches of slices and of pods come
// back one after the other when an API server was away: where the slices are ahead they name pods
// that aren't known yet, where they are behind pods that are no more. Neither empties a service.
type standing map[unit]stand

// stand is one of them. since is when it had none of its own any more; zero: it has some.
type stand struct{ since time.Time }

// lingering is how long a service keeps the endpoints that it had. Until a watch is tried again a
// minute may pass: client-go waits for 30 seconds, and for up to as long again.
const lingering = 90 * time.Second

// standingIs is what is to become of a service's endpoints.
type standingIs int

const (
	asMade  standingIs = iota
	stays              // what there was before stays
	begins             // so it does from now on, until it is judged anew after lingering at the latest
	givenUp            // it has stayed for long enough
)

// judge says what becomes of a service's endpoints, some of which may have been left out for pods
// that are unknown.
func (s standing) judge(u unit, made []*pb.Endpoint, unknown int, now time.Time) standingIs {
	was, stood := s[u]
	switch {
	case slices.ContainsFunc(made, takesRequests):
		s[u] = stand{}
	case !stood || unknown == 0:
		delete(s, u)
	case was.since.IsZero():
		s[u] = stand{now}
		return begins
	case now.Sub(was.since) < lingering:
		return stays
	default:
		delete(s, u)
		return givenUp
	}
	return asMade
}

func takesRequests(e *pb.Endpoint) bool {
	return e.Health == pb.EndpointHealthReady || e.Health == pb.EndpointHealthHealthy
}
