package gatewayapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Statuses is the table of what is to be said in the statuses of objects: config/gatewayapi
// publishes it, controller/status writes it into the objects. Keys are the object's table and key,
// payloads a Judged as JSON.
const Statuses = "gatewaystatuses"

// GenerationAnnotation is the annotation of a row that says which metadata.generation its object
// had. Rows of objects that are in no API server have none.
const GenerationAnnotation = "internal.coxswain.io/generation"

// UIDAnnotation says which object it was: one that was deleted and made again has another UID, and
// no status.
const UIDAnnotation = "internal.coxswain.io/uid"

// Judged is what is to be said of an object, but for what follows from where its Gateway can be
// reached.
type Judged struct {
	// Generation of the object that was judged.
	Generation int64 `json:"generation"`
	// UID is that of the object.
	UID string `json:"uid,omitempty"`
	// Status is the object's status, as far as it is ours: neither times nor generations are in it.
	Status json.RawMessage `json:"status"`
	// Controllers are those whose entries in the status these are, where a status has one for each
	// controller (parents, ancestors). None: all of the status is the controller's of the class.
	Controllers []gateway.GatewayController `json:"controllers,omitempty"`
	// At says what the condition Programmed and the addresses follow from; nil: nothing does.
	At *Reachable `json:"at,omitempty"`
}

// Reachable says by which services a Gateway is to be reached.
type Reachable struct {
	// Namespace is the Gateway's, Services are hosts, Ports the services' that listeners have.
	Namespace string   `json:"namespace"`
	Services  []string `json:"services,omitempty"`
	Ports     []uint32 `json:"ports,omitempty"`
	// Datagrams are those that listeners for datagrams have.
	Datagrams []uint32 `json:"datagrams,omitempty"`
	// Prefers is which addresses are told where there is none outside of the cluster: Hostname,
	// IPAddress, or both where it is empty.
	Prefers gateway.AddressType `json:"prefers,omitempty"`
	// Set: it is of a ListenerSet, whose status has no addresses.
	Set bool `json:"set,omitempty"`
	// Unserved: whether it can be reached or not, Programmed is false for the reason that the
	// status has.
	Unserved bool `json:"unserved,omitempty"`
}

// StatusKey is the key in Statuses of what is to be said of an object.
func StatusKey(table, key string) string { return table + "/" + key }

// OfStatus is the object that a key of Statuses means: its table, and its key there. ok: the table
// is that of a kind.
func OfStatus(statusKey string) (k Kind, key string, ok bool) {
	at := strings.IndexByte(statusKey, '/')
	if at < 0 {
		return k, "", false
	}
	end := strings.IndexByte(statusKey[at+1:], '/')
	if end < 0 {
		return k, "", false
	}
	table, key := statusKey[:at+1+end], statusKey[at+2+end:]
	k, ok = Lookup(table)
	return k, key, ok && key != "" && (k.Cluster != strings.Contains(key, "/"))
}

// Generation is what a row's annotation says; false: its object is in no API server.
func Generation(row *pb.Row) (int64, bool) {
	n, err := strconv.ParseInt(row.Annotations[GenerationAnnotation], 10, 64)
	return n, err == nil
}

// Row makes the row of a Judged.
func (j *Judged) Row(key string, from *pb.Row) (*pb.Row, error) {
	payload, err := json.Marshal(j)
	return &pb.Row{Key: key, Payload: payload, Source: from.Source, Created: from.Created, Undated: from.Undated}, err
}

// DecodeJudged reads a row of Statuses.
func DecodeJudged(row *pb.Row) (*Judged, error) {
	j := &Judged{}
	if err := json.Unmarshal(row.Payload, j); err != nil {
		return nil, fmt.Errorf("row %s of %s can't be read: %w", row.Key, Statuses, err)
	}
	return j, nil
}

// SameJudged reports whether two say the same.
func SameJudged(a, b *Judged) bool {
	if a == b {
		return true
	}
	if a.Generation != b.Generation || a.UID != b.UID || string(a.Status) != string(b.Status) ||
		!slices.Equal(a.Controllers, b.Controllers) || (a.At == nil) != (b.At == nil) {
		return false
	}
	return a.At == nil || a.At.Namespace == b.At.Namespace && slices.Equal(a.At.Services, b.At.Services) && slices.Equal(a.At.Ports, b.At.Ports) &&
		slices.Equal(a.At.Datagrams, b.At.Datagrams) && a.At.Prefers == b.At.Prefers && a.At.Set == b.At.Set && a.At.Unserved == b.At.Unserved
}
