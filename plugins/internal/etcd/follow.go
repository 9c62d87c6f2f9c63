package etcd

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// Pair is a key with its value.
type Pair struct {
	// Key is without the prefix.
	Key   string
	Value []byte
	// Created is the revision of the first write, Modified of the last.
	Created, Modified int64
	// Lease is why it may go by itself; 0: it won't.
	Lease int64
}

// Batch is what has changed.
type Batch struct {
	// Whole: Put is all that there is.
	Whole bool
	// Put are pairs in the order of keys, or as they were written, each key once.
	Put []Pair
	// Gone are keys that were deleted, or whose lease has ended.
	Gone []string
}

// Followed is a prefix that is followed.
type Followed struct {
	Session *Session
	Prefix  string
	// Most is how many keys there may be: of more, those that come first in order count. Left is
	// told how many are left out, whenever that changes.
	Most int
	Left func(keys int)
	Log  Log

	cluster  uint64
	revision int64
	// count is how many keys there are, left how many of them are left out.
	count, left int
	said        complaints
}

// page is how many keys are asked for at once.
const page = 500

// Run tells to of all pairs, and then of each change, in order, until ctx ends or to returns an
// error, which it returns. Whatever is in the way is said once a minute, and to the core (sdk.Lost,
// sdk.Found), and tried again: nothing is told of meanwhile. After a compaction, and where an etcd
// was restored or exchanged, all is read anew.
func (f *Followed) Run(ctx context.Context, to func(Batch) error) error {
	whole := true
	for {
		var told error
		c, err := f.Session.Client(ctx)
		if err == nil {
			whole, err = f.follow(ctx, c, whole, func(b Batch) error { told = to(b); return told })
		}
		if told != nil {
			return told
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			sdk.Lost(ctx, err)
		}
		if err != nil && f.said.first(err, time.Now()) {
			f.Log(sdk.Warn, "etcd's keys can't be read; what is known stays, and it is tried again", "prefix", f.Prefix, "error", err.Error())
		}
		select { // whoever answers decides how often this happens
		case <-ctx.Done():
			return nil
		case <-time.After(retry):
		}
	}
}

// follow reads all where that is wanted, and then what changes, until that ends. whole: all has to
// be read anew.
func (f *Followed) follow(ctx context.Context, c *clientv3.Client, whole bool, to func(Batch) error) (again bool, err error) {
	if whole {
		pairs, err := f.list(ctx, c)
		if err != nil {
			return true, err
		}
		if err := to(Batch{Whole: true, Put: pairs}); err != nil {
			return true, err
		}
		f.said = complaints{}
		sdk.Found(ctx)
	}
	watching, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer stop()
	changes := c.Watch(watching, f.Prefix, clientv3.WithPrefix(), clientv3.WithRev(f.revision+1), clientv3.WithFragment())
	check := time.NewTicker(checking)
	defer check.Stop()
	for {
		select {
		case r, ok := <-changes:
			switch err := r.Err(); {
			case !ok && ctx.Err() != nil:
				return false, nil
			case !ok:
				return false, errors.New("the watch has ended")
			case errors.Is(err, rpctypes.ErrCompacted):
				f.Log(sdk.Info, "etcd has forgotten what was missed (compaction); all keys are read anew", "prefix", f.Prefix)
				return true, nil
			case err != nil:
				return false, err
			}
			b, err := f.batch(r.Events)
			if err != nil {
				return true, err
			}
			f.revision = max(f.revision, r.Header.Revision)
			if len(b.Put)+len(b.Gone) > 0 && (f.left > 0 || f.count > f.Most) { // who is among the first now?
				return true, nil
			}
			if len(b.Put)+len(b.Gone) == 0 {
				continue
			}
			if err := to(b); err != nil {
				return false, err
			}
			sdk.Found(ctx)
		case <-f.Session.again:
			check.Reset(recheck)
		case <-check.C:
			check.Reset(checking)
			if f.check(ctx, c) {
				return true, nil
			}
		}
	}
}

// check looks whether the etcd is there, and reports whether it is another one than before.
func (f *Followed) check(ctx context.Context, c *clientv3.Client) (another bool) {
	exchanged, err := f.exchanged(ctx, c)
	switch {
	case err != nil && ctx.Err() == nil:
		sdk.Lost(ctx, err)
	case exchanged:
		f.Log(sdk.Warn, "this is another etcd, or it was restored to an earlier state; all keys are read anew", "prefix", f.Prefix)
		return true
	case err == nil:
		sdk.Found(ctx)
	}
	return false
}

// checking is how often it is asked whether this is still the same etcd; recheck how long after it
// was lost and is there again, so that what was missed has come by then.
const checking, recheck = 5 * time.Second, 300 * time.Millisecond

// exchanged reports whether the etcd that answers has another identity, or an earlier revision than
// was seen.
func (f *Followed) exchanged(ctx context.Context, c *clientv3.Client) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := c.Get(ctx, f.Prefix, clientv3.WithCountOnly()) // linearizable: a member that lags doesn't answer for itself
	return err == nil && (r.Header.GetClusterId() != f.cluster || r.Header.GetRevision() < f.revision), err
}

// mostBytes is how much is kept of an etcd, keys and values: what is more is left out.
const mostBytes = 256 << 20

// Reasons why an answer is none.
var (
	errOthers   = errors.New("the answer has keys that were not asked for: is it etcd that answers?")
	errRevision = errors.New("the answer is of no revision: is it etcd that answers?")
)

// list reads all pairs at one revision, page by page.
func (f *Followed) list(ctx context.Context, c *clientv3.Client) ([]Pair, error) {
	var pairs []Pair
	end := clientv3.GetPrefixRangeEnd(f.Prefix)
	from, revision, left, bytes, most := f.Prefix, int64(0), 0, 0, int64(page)
	for {
		asking, cancel := context.WithTimeout(ctx, patience)
		r, err := c.Get(asking, from, clientv3.WithRange(end), clientv3.WithLimit(most), clientv3.WithRev(revision))
		cancel()
		if most > 1 && tooLarge(err) {
			most = max(1, most/8)
			continue
		}
		if err != nil {
			return nil, err
		}
		if revision == 0 {
			revision, f.cluster = r.Header.GetRevision(), r.Header.GetClusterId()
		}
		if revision <= 0 {
			return nil, errRevision
		}
		for i, kv := range r.Kvs {
			if key := string(kv.GetKey()); key < from || !strings.HasPrefix(key, f.Prefix) {
				return nil, errOthers
			}
			from = string(kv.Key) + "\x00"
			if bytes += len(kv.Key) + len(kv.Value); len(pairs) == f.Most || bytes > mostBytes {
				left = max(1, int(r.Count)-i)
				break
			}
			pairs = append(pairs, f.pair(kv))
		}
		if left > 0 || !r.More || len(r.Kvs) == 0 {
			break
		}
	}
	f.revision, f.count, f.left = revision, len(pairs)+left, left
	f.Left(left)
	return pairs, nil
}

func (f *Followed) pair(kv *mvccpb.KeyValue) Pair {
	return Pair{Key: string(kv.Key)[len(f.Prefix):], Value: kv.Value, Created: kv.CreateRevision, Modified: kv.ModRevision, Lease: kv.Lease}
}

// tooLarge reports whether an answer was larger than what is read at once.
func tooLarge(err error) bool {
	var known rpctypes.EtcdError
	return errors.As(err, &known) && known.Code() == codes.ResourceExhausted || status.Code(err) == codes.ResourceExhausted
}

// batch takes events together: of a key, the last one counts.
func (f *Followed) batch(events []*clientv3.Event) (b Batch, err error) {
	last := make(map[string]*clientv3.Event, len(events))
	for _, e := range events {
		if !strings.HasPrefix(string(e.Kv.Key), f.Prefix) {
			return b, errOthers
		}
		last[string(e.Kv.Key)] = e
		switch {
		case e.Type == clientv3.EventTypeDelete:
			f.count--
		case e.IsCreate():
			f.count++
		}
	}
	for _, e := range events {
		switch {
		case last[string(e.Kv.Key)] != e:
		case e.Type == clientv3.EventTypeDelete:
			b.Gone = append(b.Gone, string(e.Kv.Key)[len(f.Prefix):])
		default:
			b.Put = append(b.Put, f.pair(e.Kv))
		}
	}
	return b, nil
}
