package nacos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
)

// Kinds of payloads. A response is called as its request is.
const (
	serverCheck     = "ServerCheckRequest"
	setup           = "ConnectionSetupRequest"
	healthCheck     = "HealthCheckRequest"
	serviceList     = "ServiceListRequest"
	subscribe       = "SubscribeServiceRequest"
	notify          = "NotifySubscriberRequest"
	notified        = "NotifySubscriberResponse"
	clientDetection = "ClientDetectionRequest"
	connectReset    = "ConnectResetRequest"
)

// reply is what all responses have.
// Source: com.alibaba.nacos.api.remote.response.Response.
type reply struct {
	Result  loose `json:"resultCode"`
	Error   loose `json:"errorCode"`
	Message loose `json:"message"`
}

// ok is the code of what went well.
const ok = "200"

// Codes of errors.
// Source: com.alibaba.nacos.api.exception.NacosException.
const (
	starting     = "300"
	unregistered = "301"
	forbidden    = "403"
	// tooLarge is none of Nacos': there was an answer, of more bytes than are taken.
	tooLarge = "size"
)

// refusal is a response that says no.
type refusal struct {
	code, text string
}

func (r *refusal) Error() string {
	hint := ""
	if r.code == forbidden {
		hint = "; username and passwordFile have to be those of a user that may read the namespace's services"
	}
	return "code " + r.code + ": " + instances.Clip(r.text) + hint
}

// refused returns why a response says no; nil: it doesn't.
func (r *reply) refused() error {
	if r.Result == ok {
		return nil
	}
	code := string(r.Error)
	if code == "" || code == "0" {
		code = string(r.Result)
	}
	return &refusal{code, string(r.Message)}
}

// names are a page of a group's services.
type names struct {
	reply
	Count loose `json:"count"`
	Names page  `json:"serviceNames"`
}

// page are names, pageSize at most.
type page []string

// UnmarshalJSON refuses more names than were asked for.
func (p *page) UnmarshalJSON(text []byte) error {
	if bytes.Count(text, []byte(`"`)) > 2*pageSize { // names have none in them: Nacos refuses other characters than letters, digits and a few signs
		return fmt.Errorf("there are more names than were asked for, %d", pageSize)
	}
	return json.Unmarshal(text, (*[]string)(p))
}

// pushed is what the server sends unasked, or answers to who subscribes.
type pushed struct {
	reply
	ID      loose        `json:"requestId"`
	Service *serviceInfo `json:"serviceInfo"`
}

// serviceInfo is a service.
// Source: com.alibaba.nacos.api.naming.pojo.ServiceInfo.
type serviceInfo struct {
	Name      string  `json:"name"`
	Group     string  `json:"groupName"`
	Protected bool    `json:"reachProtectionThreshold"`
	Hosts     written `json:"hosts"`
}

// written is a list of instances as it is written.
type written []byte

// UnmarshalJSON takes a list, or null.
func (h *written) UnmarshalJSON(text []byte) error {
	if text[0] != '[' && string(text) != "null" {
		return errors.New("the hosts are no list")
	}
	*h = bytes.Clone(text)
	return nil
}

// hosted is what a service has.
type hosted struct {
	instances []*instance
	// broken are those that can't be read; nameless: of one not even the address can be.
	broken   []broken
	nameless bool
	// left are how many were not read, since there are too many, off how many are disabled.
	left, off int
	// protected: the server says of all that they are healthy, since too few are.
	protected bool
}

type broken struct{ id, why string }

// instance is one. Fields that aren't read are left out.
// Source: com.alibaba.nacos.api.naming.pojo.Instance.
type instance struct {
	facts
	Metadata map[string]loose `json:"metadata"`
}

// facts are what can be compared.
type facts struct {
	IP        string `json:"ip"`
	Port      loose  `json:"port"`
	Weight    loose  `json:"weight"`
	Cluster   string `json:"clusterName"`
	Healthy   *flag  `json:"healthy"`
	Enabled   *flag  `json:"enabled"`
	Ephemeral *flag  `json:"ephemeral"`
}

// flag is true where nothing is said.
type flag bool

func (f *flag) is() bool { return f == nil || bool(*f) }

// id is what makes an instance itself in its service.
func (i *instance) id() string { return i.IP + ":" + string(i.Port) + "#" + i.Cluster }

// same reports whether two say the same.
func (i *instance) same(other *instance) bool {
	return i == other || i.IP == other.IP && i.Port == other.Port && i.Weight == other.Weight &&
		i.Cluster == other.Cluster && i.Healthy.is() == other.Healthy.is() && i.Enabled.is() == other.Enabled.is() &&
		i.Ephemeral.is() == other.Ephemeral.is() && maps.Equal(i.Metadata, other.Metadata)
}

// loose is text that may be written as anything else, too.
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

// read reads a response's JSON into a struct that has a reply, and returns why it says no.
func read(body []byte, into interface{ refused() error }) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer can't be read: %w", err)
	}
	return into.refused()
}

var errNoService = errors.New("the answer has no service")

// empty reports whether there are no instances.
func (h *hosted) empty() bool { return len(h.instances)+len(h.broken)+h.left+h.off == 0 }

// hosted reads a service's instances, most at most, but for those that were read before, by their
// text, and returns all that are read now. One that can't be read harms no other.
func (s *serviceInfo) hosted(before map[string]*instance, most int) (out *hosted, now map[string]*instance) {
	out, now = &hosted{protected: s.Protected}, map[string]*instance{}
	d := json.NewDecoder(bytes.NewReader(s.Hosts))
	if begin, err := d.Token(); err != nil || begin == nil {
		return out, now
	}
	for n := 1; d.More(); n++ {
		var text json.RawMessage
		if err := d.Decode(&text); err != nil { // not of what was read as JSON before
			break
		}
		if len(out.instances)+len(out.broken) >= most {
			out.left++
			continue
		}
		if i := before[string(text)]; i != nil {
			now[string(text)] = i
			out.instances = append(out.instances, i)
			continue
		}
		i, wrong := readInstance(text)
		switch {
		case wrong != nil:
			id := "#" + strconv.Itoa(n)
			if i != nil && i.IP != "" {
				id = i.id()
			} else {
				out.nameless = true
			}
			out.broken = append(out.broken, broken{id, wrong.Error()})
		case !i.Enabled.is(): // an operator took it away; the server tells of it in some answers and not in others
			out.off++
		default:
			now[string(text)] = i
			out.instances = append(out.instances, i)
		}
	}
	return out, now
}

// readInstance reads one. What can be read of one that is wrong comes with the error.
func readInstance(text json.RawMessage) (*instance, error) {
	var i *instance
	err := json.Unmarshal(text, &i) // goes on after what has the wrong type, and says so at the end
	switch {
	case i == nil && err == nil:
		err = errors.New("it is null")
	case err == nil && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")):
		err = errors.New("it is no object")
	}
	return i, err
}
