package secrets

import (
	"encoding/json"
	"errors"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Requests has what generator/sds wants to know, for sources that read what is asked for alone: a
// row for each account whose rights are wanted, and one for each object that it asks for and may
// have, as far as that is known. Keys are those of Request.Key, payloads a Request as JSON.
const Requests = "secretrequests"

// Named has the Secrets and ConfigMaps that objects name and may have, such as Gateways those of
// their listeners, for the same sources: those who say what is wrong with an object want to know
// whether what it names is there, before any proxy asks for it. Payloads are as in Requests,
// without an account.
const Named = "secretnames"

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

// Request is a question on behalf of proxies of an account.
type Request struct {
	// Account that asks. Its rights are wanted where there are no objects.
	Account Account `json:"account"`
	// Objects that are wanted; generator/sds names one in a row, so that no list makes one too
	// large.
	Objects []Object `json:"objects,omitempty"`
}

// Key returns the key of the request's row: that of the account or, of one about an object,
// followed by / and the key of the object's absence.
func (r Request) Key() string {
	key := r.Account.Key()
	if len(r.Objects) > 0 {
		key += "/" + r.Objects[0].AbsenceKey()
	}
	return key
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

// ParseRight reads the payload of a row of Rights.
func ParseRight(payload []byte) (Right, error) { return parse[Right](payload) }

func decode[T any](row *pb.Row) (T, error) { return parse[T](row.Payload) }

func parse[T any](payload []byte) (T, error) {
	var v T
	if json.Unmarshal(payload, &v) != nil {
		return v, errors.New("its row can't be read")
	}
	return v, nil
}
