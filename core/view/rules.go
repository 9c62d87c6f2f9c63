package view

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
)

// keeps says what Envoy would say of a resource that decodes. Types that this binary doesn't know
// are taken as they are.
func keeps(typeURL string, value []byte) error {
	t, err := protoregistry.GlobalTypes.FindMessageByURL(typeURL)
	if err != nil {
		return nil
	}
	m := t.New().Interface()
	if err := proto.Unmarshal(value, m); err != nil {
		return err
	}
	if err := envoyrules.CheckAll(m); err != nil {
		return fmt.Errorf("proxies would refuse it: %w", err)
	}
	return nil
}
