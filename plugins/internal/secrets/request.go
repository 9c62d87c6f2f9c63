package secrets

import (
	"encoding/json"
	"errors"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Requests has what generator/sds wants to know, for sources that read what is asked for alone, a
// row for each account that asks: NAMESPACE/ACCOUNT@CLUSTER, with a Request as JSON.
const Requests = "secretrequests"

// Rights has what accounts may do, in answer to requests: NAMESPACE/ACCOUNT, in other clusters than
// the first followed by @ and the cluster, with a Right as JSON.
const Rights = "secretrights"

// Absences has the objects that were asked for and are not there, or may not be read, in answer to
// requests: KIND/ and the object's key, with an Absence as JSON.
const Absences = "secretabsences"

// Absence says why there is no object.
type Absence struct {
	Reason string `json:"reason"`
}

// AbsenceKey returns the key of the object's row in Absences.
func (o Object) AbsenceKey() string { return o.Kind + "/" + o.Key() }

// Encode returns the payload of a row.
func (a Absence) Encode() []byte { return encode(a) }

// DecodeAbsence reads a row of Absences.
func DecodeAbsence(row *pb.Row) (Absence, error) { return decode[Absence](row) }

// Request is what proxies of an account ask for.
type Request struct {
	// Account whose rights are wanted.
	Account Account `json:"account"`
	// Objects that are wanted.
	Objects []Object `json:"objects"`
}

// Account is a service account. Cluster is empty for those of the first cluster.
type Account struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Key returns the key of the row of the account's rights.
func (a Account) Key() string {
	key := a.Namespace + "/" + a.Name
	if a.Cluster != "" {
		key += "@" + a.Cluster
	}
	return key
}

// Right reports whether an account may have the Secrets of its namespace, and why not.
type Right struct {
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason,omitempty"`
}

// Encode returns the payload of a row.
func (r Request) Encode() []byte { return encode(r) }

// Encode returns the payload of a row.
func (r Right) Encode() []byte { return encode(r) }

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and bytes always can be
	}
	return text
}

// DecodeRequest reads a row of Requests, DecodeRight one of Rights.
func DecodeRequest(row *pb.Row) (Request, error) { return decode[Request](row) }

// DecodeRight reads a row of Rights.
func DecodeRight(row *pb.Row) (Right, error) { return decode[Right](row) }

func decode[T any](row *pb.Row) (T, error) {
	var v T
	if json.Unmarshal(row.Payload, &v) != nil {
		return v, errors.New("its row can't be read")
	}
	return v, nil
}
