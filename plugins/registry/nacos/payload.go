package nacos

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// payload is the one message of Nacos' gRPC protocol: JSON, what is said in it, and headers.
// Source: Nacos, nacos_grpc_service.proto: message Payload {Metadata metadata = 2;
// google.protobuf.Any body = 3;}, message Metadata {string type = 3; map<string, string> headers =
// 7; string clientIp = 8;}.
type payload struct {
	kind     string
	headers  map[string]string
	clientIP string
	body     []byte
}

// Fields' numbers.
const (
	metadataField, bodyField         = 2, 3
	kindField, headersField, ipField = 3, 7, 8
	keyField, valueField             = 1, 2
	anyValueField                    = 2
)

// Methods of the server.
const (
	requestMethod = "/Request/request"
	streamMethod  = "/BiRequestStream/requestBiStream"
)

// codec writes and reads payloads for gRPC. Its messages are *payload.
type codec struct{}

// Name is that of the content type: the messages are Protocol Buffers.
func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) ([]byte, error) {
	p, ok := v.(*payload)
	if !ok {
		return nil, fmt.Errorf("%T is no payload", v)
	}
	var metadata []byte
	metadata = appendText(metadata, kindField, p.kind)
	for _, key := range slices.Sorted(maps.Keys(p.headers)) {
		header := appendText(appendText(nil, keyField, key), valueField, p.headers[key])
		metadata = appendBytes(metadata, headersField, header)
	}
	metadata = appendText(metadata, ipField, p.clientIP)
	out := appendBytes(nil, metadataField, metadata)
	return appendBytes(out, bodyField, appendBytes(nil, anyValueField, p.body)), nil
}

func appendText(to []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), text)
}

func appendBytes(to []byte, field protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), b)
}

func (codec) Unmarshal(data []byte, v any) error {
	p, ok := v.(*payload)
	if !ok {
		return fmt.Errorf("%T is no payload", v)
	}
	*p = payload{headers: map[string]string{}}
	return fields(data, func(field protowire.Number, b []byte) error {
		switch field {
		case metadataField:
			return fields(b, p.metadata)
		case bodyField:
			return fields(b, func(field protowire.Number, b []byte) error {
				if field == anyValueField {
					p.body = bytes.Clone(b)
				}
				return nil
			})
		}
		return nil
	})
}

func (p *payload) metadata(field protowire.Number, b []byte) error {
	switch field {
	case kindField:
		p.kind = string(b)
	case ipField:
		p.clientIP = string(b)
	case headersField:
		var key, value string
		err := fields(b, func(field protowire.Number, b []byte) error {
			switch field {
			case keyField:
				key = string(b)
			case valueField:
				value = string(b)
			}
			return nil
		})
		p.headers[key] = value
		return err
	}
	return nil
}

var errCut = errors.New("it is cut, or no payload of Nacos'")

// fields calls take for each field of a message that has a length; others are passed over.
func fields(data []byte, take func(protowire.Number, []byte) error) error {
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errCut
		}
		data = data[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(field, kind, data); n < 0 {
				return errCut
			}
			data = data[n:]
			continue
		}
		b, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return errCut
		}
		if err := take(field, b); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
