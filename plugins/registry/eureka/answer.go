package eureka

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
)

// Statuses of instances.
// Source: com.netflix.appinfo.InstanceInfo.InstanceStatus.
const (
	up           = "UP"
	down         = "DOWN"
	starting     = "STARTING"
	outOfService = "OUT_OF_SERVICE"
	unknown      = "UNKNOWN"
)

// statuses is never changed.
var statuses = []string{up, down, starting, outOfService, unknown}

// list is an answer: everything, or what changed.
type list struct {
	// hash is what the server says of all instances that it has after that: how many there are of
	// each status; empty where there are none, or where it doesn't say.
	hash      string
	instances []*instance
	// broken are those that can't be read, left how many were not read since there are too many.
	broken []broken
	left   int
}

type broken struct {
	app, id, status, action string
	why                     error
}

// instance is one. Fields that aren't read are left out.
// Source: Eureka's wiki, "Eureka REST operations"; com.netflix.appinfo.InstanceInfo.
type instance struct {
	facts
	Lease struct {
		Duration   loose `json:"durationInSecs"`
		Registered loose `json:"registrationTimestamp"`
	} `json:"leaseInfo"`
	Dirty      loose            `json:"lastDirtyTimestamp"`
	Action     string           `json:"actionType"`
	Metadata   map[string]loose `json:"metadata"`
	DataCenter struct {
		Metadata map[string]loose `json:"metadata"`
	} `json:"dataCenterInfo"`
}

// facts are what can be compared.
type facts struct {
	ID        string `json:"instanceId"`
	App       string `json:"app"`
	Group     string `json:"appGroupName"`
	ASG       string `json:"asgName"`
	Host      string `json:"hostName"`
	IP        string `json:"ipAddr"`
	VIP       string `json:"vipAddress"`
	SecureVIP string `json:"secureVipAddress"`
	Status    string `json:"status"`
	Port      port   `json:"port"`
	Secure    port   `json:"securePort"`
}

type port struct {
	Number  loose `json:"$"`
	Enabled loose `json:"@enabled"`
}

// key is what makes an instance itself: its application and its own ID.
func (i *instance) key() string { return i.App + "/" + i.ID }

// same reports whether two say the same of what the mesh knows.
func (i *instance) same(other *instance) bool {
	return i.facts == other.facts && maps.Equal(i.Metadata, other.Metadata) && maps.Equal(i.DataCenter.Metadata, other.DataCenter.Metadata)
}

// Actions of instances in what changed.
const deleted = "DELETED"

// loose is text that may be written as anything else, too: servers, and those who register, differ
// in what has quotes.
type loose string

func (l *loose) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, (*string)(l))
	}
	if *l = loose(text); *l == "null" {
		*l = ""
	}
	return nil
}

// errNone says that an answer is none of Eureka's.
var errNone = errors.New(`the answer has no "applications": is it Eureka that answers?`)

// read reads an answer, and no more than most instances of it. Only one that is no JSON object of
// applications fails: an instance that can't be read harms no other.
func read(body []byte, most int) (*list, error) {
	r := &reader{Decoder: json.NewDecoder(bytes.NewReader(body)), body: body, most: most, out: &list{}}
	if r.next() != '{' {
		if !json.Valid(body) {
			return nil, errors.New("the answer is no JSON")
		}
		return nil, errNone
	}
	there := false
	err := r.object(func(name string) error {
		if name != "applications" || r.next() != '{' {
			return r.skip()
		}
		there = true
		return r.object(r.applications)
	})
	if err == nil {
		if _, err = r.Token(); err == nil {
			err = errors.New("there is more after it")
		} else if err == io.EOF {
			err = nil
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer is no JSON: %w", err)
	case !there:
		return nil, errNone
	}
	return r.out, nil
}

// reader walks through an answer, so that no more of it is kept than may be.
type reader struct {
	*json.Decoder
	body []byte
	most int
	out  *list
}

// next is the first byte of the value that comes; 0: there is none.
func (r *reader) next() byte {
	rest := bytes.TrimLeft(r.body[min(int(r.InputOffset()), len(r.body)):], " \t\r\n:,")
	if len(rest) == 0 {
		return 0
	}
	return rest[0]
}

// skip passes a value over.
func (r *reader) skip() error { return r.Decode(&ignored{}) }

// ignored reads anything and keeps nothing.
type ignored struct{}

// UnmarshalJSON takes anything.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// object calls field for each field of an object, which has to take its value.
func (r *reader) object(field func(name string) error) error {
	if _, err := r.Token(); err != nil {
		return err
	}
	for r.More() {
		name, err := r.Token()
		if err == nil {
			err = field(name.(string))
		}
		if err != nil {
			return err
		}
	}
	_, err := r.Token()
	return err
}

// each calls one for each element of a list, which has to take it; or, as older servers wrote it,
// for the only one. Null has none.
func (r *reader) each(one func() error) error {
	switch r.next() {
	case 'n':
		return r.skip()
	case '[':
	default:
		return one()
	}
	if _, err := r.Token(); err != nil {
		return err
	}
	for r.More() {
		if err := one(); err != nil {
			return err
		}
	}
	_, err := r.Token()
	return err
}

func (r *reader) applications(name string) error {
	switch name {
	case "apps__hashcode":
		var hash loose
		err := r.Decode(&hash)
		r.out.hash = string(hash)
		return err
	case "application":
		return r.each(r.application)
	}
	return r.skip()
}

// application reads one: its name may come after its instances.
func (r *reader) application() error {
	switch r.next() {
	case '{':
	case 'n':
		return r.skip()
	default:
		r.out.add("applications", nil, errors.New("an application is neither an object nor null"))
		return r.skip()
	}
	type found struct {
		instance *instance
		err      error
	}
	var app loose
	var all []found
	err := r.object(func(name string) error {
		switch name {
		case "name":
			return r.Decode(&app)
		case "instance":
			return r.each(func() error {
				if len(r.out.instances)+len(r.out.broken)+len(all) >= r.most {
					r.out.left++
					return r.skip()
				}
				var i *instance
				err := r.Decode(&i) // goes on after what has the wrong type, and says so at the end
				if wrong := (*json.UnmarshalTypeError)(nil); err != nil && !errors.As(err, &wrong) {
					return err
				}
				all = append(all, found{i, err})
				return nil
			})
		}
		return r.skip()
	})
	for _, f := range all {
		r.out.add(string(app), f.instance, f.err)
	}
	return err
}

// add adds an instance; nil: it is none, for a reason.
func (l *list) add(app string, i *instance, err error) {
	if i == nil {
		i = &instance{}
		if err == nil {
			err = errors.New("it is null")
		}
	}
	if i.App == "" {
		i.App = app
	}
	if i.App = strings.ToUpper(i.App); i.ID == "" {
		i.ID = oldID(i)
	}
	if i.ID == "" {
		i.ID = fmt.Sprintf("#%d", len(l.broken)+1) // none has such a name
		if err == nil {
			err = errors.New("it has no instanceId and no hostName")
		}
	}
	if err != nil {
		l.broken = append(l.broken, broken{i.App, i.ID, i.Status, i.Action, err})
		return
	}
	delete(i.Metadata, "@class") // of Java's own
	l.instances = append(l.instances, i)
}

// oldID is the ID of an instance that has none, as those of clients before 2015.
// Source: com.netflix.appinfo.InstanceInfo.getId.
func oldID(i *instance) string {
	if id := string(i.DataCenter.Metadata["instance-id"]); id != "" {
		return id
	}
	return i.Host
}

// hash is the form in which servers tell how many instances they have of each status.
// Source: com.netflix.discovery.shared.Applications.getReconcileHashCode.
func hash(counts map[string]int) string {
	var out strings.Builder
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		if counts[status] > 0 {
			out.WriteString(status + "_" + strconv.Itoa(counts[status]) + "_")
		}
	}
	return out.String()
}

// refusal is an answer that isn't 200.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string {
	hint := ""
	switch r.status {
	case 401:
		hint = "; username and passwordFile have to be those that the server wants"
	case 403:
		hint = "; it may be one that was just started and doesn't answer before " +
			"eureka.server.wait-time-in-ms-when-sync-empty has passed, or one that wants other credentials"
	case 404:
		hint = "; the server's URL ends before /apps: .../eureka for Spring Cloud, .../eureka/v2 for Netflix' own"
	}
	text := ""
	if r.text != "" {
		text = ": " + instances.Clip(r.text)
	}
	return fmt.Sprintf("status %d%s%s", r.status, text, hint)
}
