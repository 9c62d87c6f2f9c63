package sdk

import (
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Check returns why the plugin would refuse a config (JSON, nil for none), without running it; nil: it would take it. A *FieldError names the field.
func (p Plugin) Check(config []byte) error {
	t := &talk{plugin: p, hello: &pb.Hello{Versions: []uint32{session.Version}, Config: config}}
	_, err := t.construct()
	return err
}
