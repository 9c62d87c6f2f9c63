package recording

import (
	"crypto/sha256"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
)

// Masked stands in the place of a secret text.
const Masked = "masked"

const secretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// mask takes secrets out of a session: the config, credentials, headers and bodies of HTTP calls,
// whole objects of stores, rows of tables of secrets, resources of sensitive types, and what texts
// repeat of the config and of credentials. What may have to be compared becomes its hash. The names
// of bodies' types are told only later: of a plugin that makes sensitive types all bodies are
// hashed. In other rows and resources letters take the place of what sdk/redact finds, so that they
// stay as long as they were.
type mask struct {
	ready  *pb.Ready
	tables *SecretTables
	texts  texts
	bodies bodies
}

// frame returns the message without secrets; false for one that can't be decoded.
func (k *mask) frame(fromCore bool, frame []byte) ([]byte, bool) {
	if fromCore {
		var m pb.FromCore
		if m.Unmarshal(frame) != nil {
			return nil, false
		}
		k.fromCore(&m)
		return m.AppendTo(nil), true
	}
	var m pb.FromPlugin
	if m.Unmarshal(frame) != nil {
		return nil, false
	}
	k.fromPlugin(&m)
	return m.AppendTo(nil), true
}

func (k *mask) fromCore(m *pb.FromCore) {
	switch {
	case m.Hello != nil:
		k.texts.config(m.Hello.Config)
		m.Hello.Config, m.Hello.Grants = nil, nil
	case m.Authenticate != nil:
		k.texts.headers(m.Authenticate.Headers)
		maskValues(m.Authenticate.Headers)
		for i, c := range m.Authenticate.Certificates {
			m.Authenticate.Certificates[i] = Hash(c)
		}
	case m.State != nil:
		k.rows(m.State.Tables)
	case m.Attach != nil:
		m.Attach.Node = redact.SameLength("", m.Attach.Node)
	case m.Report != nil:
		m.Report.Detail = redact.Text(m.Report.Detail)
	case m.Freed != nil:
		k.bodies.free(m.Freed.Bodies)
	case m.Patch != nil && SensitiveType(k.ready, m.Patch.Type):
		maskResources(m.Patch.Resources)
	case m.Patch != nil:
		redactResources(m.Patch.Resources)
	case m.Fetched != nil:
		maskValues(m.Fetched.Headers)
		m.Fetched.Body = Hash(m.Fetched.Body)
	case m.Store != nil:
		m.Store.Object = Hash(m.Store.Object)
	case m.Stored != nil:
		maskStored(m.Stored)
	case m.Call != nil:
		m.Call.Request = Hash(m.Call.Request)
	}
}

func (k *mask) fromPlugin(m *pb.FromPlugin) {
	switch {
	case m.Ready != nil:
		k.ready = m.Ready
		k.tables.Declare(m.Ready)
	case m.Rows != nil:
		k.rows(m.Rows.Tables)
	case m.Bodies != nil && Sensitive(k.ready):
		for _, b := range m.Bodies.Bodies {
			b.Bytes, b.Base, b.Head, b.Tail = Hash(b.Bytes), 0, 0, 0 // no part of another hash
		}
	case m.Bodies != nil:
		k.bodies.mask(m.Bodies.Bodies)
	case m.Patched != nil && Sensitive(k.ready):
		maskResources(m.Patched.Resources)
	case m.Patched != nil:
		redactResources(m.Patched.Resources)
	case m.Answer != nil && Sensitive(k.ready):
		maskResources(m.Answer.Resources)
	case m.Answer != nil:
		redactResources(m.Answer.Resources)
	case m.Fetch != nil:
		maskValues(m.Fetch.Headers)
		m.Fetch.Url, m.Fetch.Body = Masked, Hash(m.Fetch.Body)
	case m.Store != nil:
		m.Store.Object = Hash(m.Store.Object)
	case m.Stored != nil:
		maskStored(m.Stored)
	case m.Called != nil:
		m.Called.Response = Hash(m.Called.Response)
	default:
		k.said(m)
	}
}

// said masks what texts repeat.
func (k *mask) said(m *pb.FromPlugin) {
	switch {
	case m.Refused != nil:
		m.Refused.Reason = k.texts.out(m.Refused.Reason)
	case m.Lost != nil:
		m.Lost.Reason = k.texts.out(m.Lost.Reason)
	case m.Log != nil:
		m.Log.Text = k.texts.out(m.Log.Text)
		for name, value := range m.Log.Fields {
			m.Log.Fields[name] = k.texts.out(value)
		}
	case m.Caller != nil:
		m.Caller.Refusal, m.Caller.Failure = k.texts.out(m.Caller.Refusal), k.texts.out(m.Caller.Failure)
	case m.Done != nil:
		for _, f := range m.Done.Faults {
			f.What, f.Reason = k.texts.out(f.What), k.texts.out(f.Reason)
		}
	}
}

// Sensitive reports whether a plugin makes or patches resources that are secrets, so that a
// recording has hashes of bodies.
func Sensitive(r *pb.Ready) bool {
	return r != nil && slices.ContainsFunc(r.Types, func(t *pb.Type) bool { return SensitiveType(r, t.Url) })
}

// SensitiveType reports whether resources of a type are secrets.
func SensitiveType(r *pb.Ready, url string) bool {
	return url == secretType || r != nil && slices.ContainsFunc(r.Types, func(t *pb.Type) bool {
		return t.Url == url && t.Traits != nil && t.Traits.Sensitive
	})
}

// Hash stands in the place of bytes.
func Hash(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}

// rows masks what rows of secrets hold; annotations often repeat the object.
func (k *mask) rows(tables []*pb.TableRows) {
	for _, t := range tables {
		if k.tables.Has(t.Table) {
			for _, r := range t.Upserts {
				r.Payload = Hash(r.Payload)
				maskValues(r.Annotations)
			}
			continue
		}
		for _, r := range t.Upserts {
			r.Payload, r.Annotations = redact.SameLength(t.Table, r.Payload), redact.Map(r.Annotations)
		}
	}
}

func maskResources(list []*pb.Resource) {
	for _, r := range list {
		r.Bytes = Hash(r.Bytes)
	}
}

func redactResources(list []*pb.Resource) {
	for _, r := range list {
		r.Bytes = redact.SameLength("", r.Bytes)
	}
}

// maskStored hashes whole objects, and leaves out what an error repeats of one.
func maskStored(m *pb.Stored) {
	m.Object = Hash(m.Object)
	for i, o := range m.Objects {
		m.Objects[i] = Hash(o)
	}
	if m.Error != "" {
		m.Error = Masked
	}
}

func maskValues(m map[string]string) {
	for name := range m {
		m[name] = Masked
	}
}
