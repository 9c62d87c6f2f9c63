package eureka

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	// broken are those that can't be read.
	broken []broken
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

// read reads an answer. Only one that is no JSON object of applications fails: an instance that
// can't be read harms no other.
func read(body []byte) (*list, error) {
	var whole struct {
		Applications *struct {
			Hash string `json:"apps__hashcode"`
			All  []struct {
				Name string      `json:"name"`
				All  []*instance `json:"instance"`
			} `json:"application"`
		} `json:"applications"`
	}
	err := json.Unmarshal(body, &whole)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return readSlowly(body)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer is no JSON: %w", err)
	}
	if whole.Applications == nil {
		return nil, errNone
	}
	out := &list{hash: whole.Applications.Hash}
	for _, a := range whole.Applications.All {
		for _, i := range a.All {
			out.add(a.Name, i, nil)
		}
	}
	return out, nil
}

// many is a list, or, as older servers wrote it, the only element of one.
type many []json.RawMessage

func (m *many) UnmarshalJSON(text []byte) error {
	switch {
	case bytes.HasPrefix(text, []byte("[")):
		return json.Unmarshal(text, (*[]json.RawMessage)(m))
	case !bytes.Equal(text, []byte("null")):
		*m = many{bytes.Clone(text)}
	}
	return nil
}

// readSlowly reads each instance by itself, to find those that can't be read.
func readSlowly(body []byte) (*list, error) {
	var whole struct {
		Applications *struct {
			Hash loose `json:"apps__hashcode"`
			All  many  `json:"application"`
		} `json:"applications"`
	}
	if err := json.Unmarshal(body, &whole); err != nil || whole.Applications == nil {
		return nil, errNone
	}
	out := &list{hash: string(whole.Applications.Hash)}
	for _, raw := range whole.Applications.All {
		var a struct {
			Name loose `json:"name"`
			All  many  `json:"instance"`
		}
		if err := json.Unmarshal(raw, &a); err != nil {
			out.add("applications", nil, errors.New("an application is neither an object nor null"))
			continue
		}
		for _, one := range a.All {
			var i *instance
			err := json.Unmarshal(one, &i) // goes on after what has the wrong type, and says so at the end
			out.add(string(a.Name), i, err)
		}
	}
	return out, nil
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
		hint = "; it may be one that was just started and doesn't answer before eureka.server.wait-time-in-ms-when-sync-empty has passed, or one that wants other credentials"
	case 404:
		hint = "; the server's URL ends before /apps: .../eureka for Spring Cloud, .../eureka/v2 for Netflix' own"
	}
	text := ""
	if r.text != "" {
		text = ": " + instances.Clip(r.text)
	}
	return fmt.Sprintf("status %d%s%s", r.status, text, hint)
}
