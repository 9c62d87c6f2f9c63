package etcd

import (
	"context"
	"crypto/tls"
	"net/url"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/plugins/internal/secure"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Access is how an etcd is reached. It is embedded in plugins' configs.
type Access struct {
	// Endpoints are URLs of members.
	Endpoints []string `json:"endpoints" required:"true" min:"1" doc:"URLs of etcd's members, http://HOST:PORT or https://HOST:PORT."`
	Username  string   `json:"username"`
	Password  string   `json:"password"`
	// TLS is needed for endpoints that begin with https; nil: the system's roots.
	TLS *secure.TLS `json:"tls" doc:"For endpoints that begin with https."`
}

const (
	// patience is how long a request may take.
	patience = 10 * time.Second
	// signs of life are asked for each keepAlive, and awaited for as long as silence.
	keepAlive, silence = 10 * time.Second, 5 * time.Second
	// mostAnswer is how large an answer is that is read, in bytes. A page of keys may be larger:
	// then it is asked for in smaller ones. etcd itself takes no value of more than 1.5 MiB by
	// default.
	mostAnswer = 32 << 20
)

// Check reports what is wrong with an access, as *sdk.FieldError.
func (a Access) Check() error {
	if len(a.Endpoints) == 0 {
		return strict.Errorf("endpoints", "at least one is needed, such as http://127.0.0.1:2379")
	}
	scheme := ""
	for i, e := range a.Endpoints {
		u, err := url.Parse(e)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" {
			return strict.Errorf(strict.At("endpoints", i), "is no URL such as http://127.0.0.1:2379 or https://etcd.example:2379")
		}
		if scheme != "" && u.Scheme != scheme {
			return strict.Errorf(strict.At("endpoints", i), "is of %s, and another one of %s", u.Scheme, scheme)
		}
		scheme = u.Scheme
	}
	switch {
	case a.TLS != nil && scheme == "http":
		return strict.Errorf("tls", "is for endpoints that begin with https")
	case (a.Username == "") != (a.Password == ""):
		return strict.Errorf("username", "username and password belong together")
	}
	return a.TLS.Check("tls")
}

// dial connects. With a user's name it asks for a token at once, so a server that is away, and
// wrong credentials, are errors.
func (a Access) dial(ctx context.Context) (*clientv3.Client, error) {
	secure, err := a.secure()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: a.Endpoints, Username: a.Username, Password: a.Password, TLS: secure, Logger: zap.NewNop(),
		MaxCallRecvMsgSize: mostAnswer, DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(checked)},
		DialTimeout: patience, DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: silence, PermitWithoutStream: true,
	})
}

// secure returns the settings of TLS; nil where there is none.
func (a Access) secure() (*tls.Config, error) {
	if u, err := url.Parse(a.Endpoints[0]); err != nil || u.Scheme != "https" {
		return nil, err
	}
	return a.TLS.Config()
}

// checked has watches end that are told of changes of nothing: the client library takes it that
// each event has a key.
func checked(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, stream grpc.Streamer,
	o ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := stream(ctx, d, c, method, o...)
	if err != nil {
		return nil, err
	}
	return watched{s}, nil
}

type watched struct{ grpc.ClientStream }

// RecvMsg implements grpc.ClientStream.
func (w watched) RecvMsg(m any) error {
	if err := w.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	if r, ok := m.(*etcdserverpb.WatchResponse); ok {
		for _, e := range r.Events {
			if e.GetKv() == nil {
				return status.Error(codes.FailedPrecondition, "an event without a key: is it etcd that answers?")
			}
		}
	}
	return nil
}
