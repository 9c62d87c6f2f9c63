package sdk

import (
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Check returns why a plugin would refuse a config (JSON, nil for none), without running it; nil:
// it would take it. A *FieldError names the field.
func Check(d Declaration, config []byte) error {
	ps := &pluginSession{plugin: d.declare(), hello: &pb.Hello{Versions: []uint32{session.Version}, Config: config}}
	_, err := ps.construct()
	return err
}

// Describe returns what a plugin answers to a Hello, without running it. An error is why it would
// refuse; a *FieldError names the config's field.
func Describe(d Declaration, hello *pb.Hello) (*pb.Ready, error) {
	ps := &pluginSession{plugin: d.declare(), hello: hello}
	k, err := ps.construct()
	if err != nil {
		return nil, err
	}
	return ps.ready(k), nil
}

// ConfigSchema returns the JSON Schema (draft 2020-12) of a plugin's config; nil: anything goes.
func ConfigSchema(d Declaration) []byte {
	if schema := d.declare().schema; schema != nil {
		return schema()
	}
	return nil
}

// Name returns a plugin's name.
func Name(d Declaration) string { return d.declare().Name }
