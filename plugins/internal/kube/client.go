package kube

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Client asks the API server about the two groups that are read, and about objects of any kind as
// they come. Clients of all groups, and the types of them, would cost each process of the program
// some megabytes.
type Client struct {
	Core, Discovery rest.Interface
	// About is asked what the API server has, as Resources does.
	About   rest.Interface
	Objects dynamic.Interface
	// Metadata reads the metadata of objects of any kind, and nothing else of them.
	Metadata metadata.Interface
}

// NewClient makes the client of some settings, which it changes. It asks nothing of the API server;
// an error is of the field kubeconfig.
func NewClient(config *rest.Config) (*Client, error) {
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	err := errors.Join(corev1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme))
	if err != nil {
		return nil, err
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	of := func(group schema.GroupVersion, path string) rest.Interface {
		one := rest.CopyConfig(config)
		one.GroupVersion, one.APIPath = &group, path
		made, failed := rest.RESTClientFor(one)
		err = errors.Join(err, failed)
		return made
	}
	out := &Client{Core: of(corev1.SchemeGroupVersion, "/api"), Discovery: of(discoveryv1.SchemeGroupVersion, "/apis")}
	about, failed := rest.UnversionedRESTClientFor(dynamic.ConfigFor(config))
	if err = errors.Join(err, failed); err != nil {
		return nil, strict.Errorf("kubeconfig", "%v", err)
	}
	out.About, out.Objects = about, dynamic.New(about)
	if out.Metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, strict.Errorf("kubeconfig", "%v", err)
	}
	return out, nil
}

// Client makes the client of an access that says it is agent.
func (a *Access) Client(agent string) (*Client, error) {
	config, err := a.Connect(agent)
	if err != nil {
		return nil, err
	}
	return NewClient(config)
}
