// Package validator is the built-in plugin controller/validator: it judges Istio's resources as
// they are written, as a webhook of the API server.
package validator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/coxswain-mesh/coxswain/plugins/internal/admission"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// agent is how the API server knows the plugin; path is the webhook's.
const agent, path = "coxswain/controller-validator", "/validate"

// invalid is how a refusal begins, as istiod's does.
const invalid = "configuration is invalid: "

// codeInvalidArgument is gRPC's.
const codeInvalidArgument = 3

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	kube.Access
	Namespace string   `json:"namespace" min:"1" doc:"The control plane's namespace: of the Lease by which replicas agree on who writes, and of what is written to try the webhook, which is never kept."`
	Revision  string   `json:"revision" doc:"The control plane's revision, whose replicas agree on who writes, and whose tags have the root, too."`
	Webhooks  []string `json:"webhooks" doc:"Names of ValidatingWebhookConfigurations that the control plane's root is written into; none: nothing is written, and no cluster is asked."`
	CABundle  string   `json:"caBundleFile" doc:"File with the root of the webhook port's certificate, in PEM, where that is from a file."`
}

func defaults() Config { return Config{Access: kube.DefaultAccess(), Namespace: "istio-system"} }

// Check implements sdk.Checker.
func (c *Config) Check() error { return c.Access.Check() }

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name: "controller/validator", Version: "1", Reads: []string{bundle.Table},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Controller, error) {
			out := &controller{config: c, checker: validation.New()}
			if len(c.Webhooks) == 0 {
				return out, nil
			}
			client, err := c.Client(agent)
			if err != nil {
				return nil, err
			}
			out.client = client
			return out, nil
		}),
	}
}

type controller struct {
	config Config
	client *kube.Client

	counts sdk.Counts
	// mu is the checker's.
	mu      sync.Mutex
	checker *validation.Checker
}

// Run keeps the webhooks' configurations until ctx ends.
func (c *controller) Run(ctx context.Context, out sdk.Publisher) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { c.counts.Report(ctx, out) })
	if c.client != nil {
		if _, _, err := kube.FirstState(ctx, out); err != nil {
			return nil
		}
		b := &admission.Bundles{
			Resource: admission.Validating, Names: c.config.Webhooks, File: c.config.CABundle, Objects: c.client.Objects,
			Namespace: c.config.Namespace, Revision: c.config.Revision, Lease: "coxswain-validator", Tried: c.try,
		}
		b.Run(ctx, out)
	}
	<-ctx.Done()
	return nil
}

// Methods implements sdk.CallHandler.
func (c *controller) Methods() []string { return []string{pb.Webhook + path} }

// Call implements sdk.CallHandler.
func (c *controller) Call(_ context.Context, call sdk.Call) ([]byte, error) {
	review, err := admission.Read(call.Request)
	if err != nil {
		c.counts.Add(counted, "outcome", "error", "reason", "400", "group", "", "resource", "", "version", "")
		return nil, &sdk.CallError{Code: codeInvalidArgument, Message: err.Error()}
	}
	verdict := c.judge(review.Request)
	outcome, reason := "passed", ""
	if !verdict.Allowed {
		outcome, reason = "failed", "invalid_resource"
	}
	if of := review.Request.Resource; review.Request.DryRun == nil || !*review.Request.DryRun {
		c.counts.Add(counted, "outcome", outcome, "reason", reason, "group", of.Group, "resource", of.Resource, "version", of.Version)
	}
	return admission.Answer(review, verdict)
}

// counted counts verdicts: passed, failed (with the reason), or error (with the HTTP status).
const counted = "validations_total"

// judge says what is wrong with what is written. What is deleted, and kinds of others, pass.
func (c *controller) judge(r *admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update || len(r.Object.Raw) == 0 {
		return admission.Allow()
	}
	var wrong, warnings []string
	for _, d := range c.read(r.Object.Raw) {
		for _, f := range d.Faults {
			f.File, f.Line, f.Column = "", 0, 0
			if f.Severity == finding.Error {
				wrong = append(wrong, f.Text())
			} else {
				warnings = append(warnings, f.Text())
			}
		}
	}
	if len(wrong) == 0 {
		return admission.Allow(warnings...)
	}
	a := admission.Refuse(http.StatusBadRequest, metav1.StatusReasonInvalid, invalid+strings.Join(wrong, "; "))
	a.Warnings = warnings
	return a
}

// read reads an object as files' are read.
func (c *controller) read(object []byte) []kinds.Document {
	c.mu.Lock()
	defer c.mu.Unlock()
	return kinds.Reader{Check: c.checker.Check}.ReadChunk("", protoyaml.Chunk{Text: object})
}

// errOpen is why the webhook is not believed to refuse anything.
var errOpen = errors.New("a VirtualService without routes would be taken")

// try has the API server try to write what a webhook must refuse, and what is never kept. Only a
// refusal by this webhook, in the words of judge, counts: others may refuse the object, too.
func (c *controller) try(ctx context.Context, hook admission.Hook) error {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
		"metadata": map[string]any{"name": "coxswain-tries-validation", "namespace": c.config.Namespace},
		"spec":     map[string]any{"hosts": []any{"tries.validation.invalid"}},
	}}
	o.SetLabels(hook.Labels)
	of := schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}
	_, err := c.client.Objects.Resource(of).Namespace(c.config.Namespace).Create(ctx, o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
		return errOpen
	case refused(err, hook):
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("it can't be tried: %w", err)
	}
	return err
}

// refused reports whether the API server says that a webhook refused an object as judge does.
// Source: Kubernetes, admission webhooks: `admission webhook "NAME" denied the request: REASON`.
func refused(err error, hook admission.Hook) bool {
	return strings.Contains(err.Error(), `admission webhook "`+hook.Name+`" denied the request: `+invalid)
}
