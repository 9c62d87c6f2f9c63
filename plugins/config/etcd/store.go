package etcd

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/plugins/internal/etcd"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// store is an etcd as an sdk.Store. An object's resourceVersion is the revision of etcd in which
// its key was written last, and etcd compares it.
type store struct {
	session *etcd.Session
	prefix  string
	tables  []string
	checker *validation.Checker
}

// largest is how many bytes an object may have (docs/contract.md).
const largest = 1032192

// Writes implements sdk.Store.
func (s *store) Writes() []string { return s.tables }

// client returns etcd's, for an object or the objects of a table.
func (s *store) client(ctx context.Context, table string) (*clientv3.Client, error) {
	if !slices.Contains(s.tables, table) {
		return nil, &sdk.StoreError{Code: sdk.StoreUnsupported, Reason: table + " is not written here"}
	}
	c, err := s.session.Client(ctx)
	return c, failure(err)
}

// named checks what names an object.
func named(i id) error {
	switch {
	case i.cluster() && (i.namespace != "" || i.name == ""):
		return invalid("", "a %s is named by its name, and is in no namespace", i.kind())
	case !i.cluster() && (i.namespace == "" || i.name == ""):
		return invalid("", "an object is named by its namespace and its name; one of them is empty")
	}
	if strings.ContainsAny(i.namespace+i.name, "/\x00") {
		return invalid("", "%q in %q is no name", i.name, i.namespace)
	}
	return nil
}

// get returns an object and its version.
func (s *store) get(ctx context.Context, i id) (o object, version int64, err error) {
	if err := named(i); err != nil {
		return nil, 0, err
	}
	c, err := s.client(ctx, i.table)
	if err != nil {
		return nil, 0, err
	}
	r, err := c.Get(ctx, s.prefix+i.key())
	if err != nil {
		return nil, 0, failure(err)
	}
	if len(r.Kvs) == 0 {
		return nil, 0, &sdk.StoreError{Code: sdk.StoreNotFound, Reason: fmt.Sprintf("there is no %s %s/%s", i.kind(), i.namespace, i.name)}
	}
	o, err = stored(i, r.Kvs[0].Value, r.Kvs[0].ModRevision)
	return o, r.Kvs[0].ModRevision, err
}

// Get implements sdk.Objects.
func (s *store) Get(ctx context.Context, table, namespace, name string) ([]byte, error) {
	o, version, err := s.get(ctx, id{table, namespace, name})
	if err != nil {
		return nil, err
	}
	return o.text(version)
}

// List implements sdk.Objects. All pages are of one revision of etcd: a page says which, and after
// which key the next begins. What can't be read as an object is left out.
func (s *store) List(ctx context.Context, table, namespace string, p sdk.Page) ([][]byte, string, error) {
	c, err := s.client(ctx, table)
	if err != nil {
		return nil, "", err
	}
	if strings.ContainsAny(namespace, "/\x00") {
		return nil, "", invalid("", "%q is no namespace", namespace)
	}
	all := s.prefix + table + "/"
	if namespace != "" {
		all += namespace + "/"
	}
	from, revision := all, int64(0)
	if p.Page != "" {
		if revision, from, err = pageOf(p.Page, all); err != nil {
			return nil, "", err
		}
	}
	limit := p.Limit
	if limit <= 0 {
		limit = 500
	}
	r, err := c.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(all)), clientv3.WithLimit(int64(limit)), clientv3.WithRev(revision))
	if err != nil {
		return nil, "", failure(err)
	}
	if revision == 0 {
		revision = r.Header.Revision
	}
	var objects [][]byte
	for _, kv := range r.Kvs {
		i, ok := idOf(strings.TrimPrefix(string(kv.Key), s.prefix))
		if !ok {
			continue
		}
		o, err := stored(i, kv.Value, kv.ModRevision)
		if err != nil || o.is(i) != nil {
			continue
		}
		text, err := o.text(kv.ModRevision)
		if err != nil {
			return nil, "", err
		}
		objects = append(objects, text)
	}
	if !r.More || len(r.Kvs) == 0 {
		return objects, "", nil
	}
	last := strings.TrimPrefix(string(r.Kvs[len(r.Kvs)-1].Key), all)
	return objects, base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", revision, last)), nil
}

// pageOf reads the name of a page.
func pageOf(page, all string) (revision int64, from string, err error) {
	text, err := base64.RawURLEncoding.DecodeString(page)
	number, last, ok := strings.Cut(string(text), " ")
	if err == nil && ok {
		revision, err = strconv.ParseInt(number, 10, 64)
	}
	if err != nil || !ok || revision <= 0 {
		return 0, "", invalid("", "%q is no page of a list", page)
	}
	return revision, all + last + "\x00", nil
}

// Create implements sdk.Objects.
func (s *store) Create(ctx context.Context, table string, text []byte) ([]byte, error) {
	o, i, err := given(table, text)
	if err != nil {
		return nil, err
	}
	o.begin()
	return s.put(ctx, i, o, 0)
}

// Update implements sdk.Objects.
func (s *store) Update(ctx context.Context, table string, text []byte) ([]byte, error) {
	return s.update(ctx, table, text, func(now, was object) object { return now.over(was) })
}

// UpdateStatus implements sdk.Objects.
func (s *store) UpdateStatus(ctx context.Context, table string, text []byte) ([]byte, error) {
	return s.update(ctx, table, text, func(now, was object) object {
		keep(was, now, "status")
		return was
	})
}

// update writes what becomes of an object, given as somebody wants it and as it is.
func (s *store) update(ctx context.Context, table string, text []byte, becomes func(now, was object) object) ([]byte, error) {
	o, i, err := given(table, text)
	if err != nil {
		return nil, err
	}
	if o.version() == "" {
		return nil, invalid("metadata.resourceVersion", "is missing: it says which version was changed")
	}
	was, version, err := s.get(ctx, i)
	if err != nil {
		return nil, err
	}
	if err := expects(o.version(), version); err != nil {
		return nil, err
	}
	return s.put(ctx, i, becomes(o, was), version)
}

// Patch implements sdk.Objects.
func (s *store) Patch(ctx context.Context, table, namespace, name string, patch []byte, version string) ([]byte, error) {
	i := id{table, namespace, name}
	changes, err := decode(patch)
	if err != nil {
		return nil, err
	}
	delete(changes, "status")
	if version == "" {
		version = changes.version()
	}
	var text []byte
	err = s.again(ctx, version, i, func(was object, is int64) error {
		now, _ := merge(map[string]any(was), map[string]any(changes)).(map[string]any)
		o := object(now)
		if err := o.is(i); err != nil {
			return err
		}
		if o.meta()["namespace"] != was.meta()["namespace"] || o.meta()["name"] != name {
			return invalid("metadata.name", "an object's name and namespace stay as they are")
		}
		var err error
		text, err = s.put(ctx, i, o.over(was), is)
		return err
	})
	return text, err
}

// Delete implements sdk.Objects.
func (s *store) Delete(ctx context.Context, table, namespace, name, version string) error {
	i := id{table, namespace, name}
	return s.again(ctx, version, i, func(was object, is int64) error {
		if !was.finalizers() {
			return s.remove(ctx, i, is)
		}
		if was.deleted() {
			return nil
		}
		was.meta()["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		_, err := s.put(ctx, i, was, is)
		return err
	})
}

// again has do change an object as it is, once more while others change it, unless the version is
// said that it must have.
func (s *store) again(ctx context.Context, version string, i id, do func(was object, is int64) error) error {
	for {
		was, is, err := s.get(ctx, i)
		if err != nil {
			return err
		}
		if version != "" {
			if err := expects(version, is); err != nil {
				return err
			}
		}
		if err = do(was, is); version != "" || sdk.CodeOf(err) != sdk.StoreConflict || ctx.Err() != nil {
			return err
		}
	}
}

// expects fails if an object's version is another one than is said.
func expects(version string, is int64) error {
	if version != strconv.FormatInt(is, 10) {
		return conflict
	}
	return nil
}

var conflict = &sdk.StoreError{Code: sdk.StoreConflict, Reason: "the object has another version by now"}

// put writes an object whose key has a version, 0 for none, and returns it. One that is to be
// deleted and has no finalizers any more goes.
func (s *store) put(ctx context.Context, i id, o object, version int64) ([]byte, error) {
	if err := named(i); err != nil {
		return nil, err
	}
	c, err := s.client(ctx, i.table)
	if err != nil {
		return nil, err
	}
	text, err := o.text(0)
	if err != nil {
		return nil, err
	}
	if len(text) > largest {
		return nil, invalid("", "has %d bytes, which is more than the %d that an object may have", len(text), largest)
	}
	if served(i.table) {
		row, faults := read(s.prefix, i, text, s.checker)
		if err := first(faults); err != nil && row == nil {
			return nil, err
		}
	}
	if o.deleted() && !o.finalizers() {
		if err := s.remove(ctx, i, version); err != nil {
			return nil, err
		}
		return o.text(version)
	}
	key := s.prefix + i.key()
	r, err := c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", version)).Then(clientv3.OpPut(key, string(text))).Commit()
	switch {
	case err != nil:
		return nil, failure(err)
	case r.Succeeded:
		return o.text(r.Header.Revision)
	case version == 0:
		return nil, &sdk.StoreError{Code: sdk.StoreAlreadyExists, Reason: fmt.Sprintf("there is a %s %s/%s", i.kind(), i.namespace, i.name)}
	}
	return nil, conflict
}

// remove deletes the key of an object of a version.
func (s *store) remove(ctx context.Context, i id, version int64) error {
	c, err := s.client(ctx, i.table)
	if err != nil {
		return err
	}
	key := s.prefix + i.key()
	r, err := c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", version)).Then(clientv3.OpDelete(key)).Commit()
	if err == nil && !r.Succeeded {
		return conflict
	}
	return failure(err)
}

// failure is what etcd said of a request, or why it said nothing.
func failure(err error) error {
	if err == nil {
		return nil
	}
	var known *sdk.StoreError
	if errors.As(err, &known) {
		return err
	}
	out := &sdk.StoreError{Code: sdk.StoreUnavailable, Reason: "etcd: " + err.Error()}
	code := status.Code(err)
	var told rpctypes.EtcdError
	if errors.As(err, &told) {
		code = told.Code()
	}
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		out.Code, out.Reason = sdk.StoreConflict, "the list is too old to be gone on with"
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		out.Code = sdk.StoreInvalid
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrPermissionDenied),
		errors.Is(err, rpctypes.ErrUserEmpty), code == codes.PermissionDenied, code == codes.Unauthenticated:
		out.Code = sdk.StoreForbidden
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), code == codes.DeadlineExceeded:
		out.Code = sdk.StoreDeadline
	}
	return out
}
