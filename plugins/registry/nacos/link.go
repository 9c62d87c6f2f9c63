package nacos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// link follows one namespace: what the server tells unasked doesn't say which namespace it is of,
// so each has a connection.
type link struct {
	config    *Config
	login     *login
	namespace string
	news      chan<- news
	// at is the place of the server that is asked.
	at int
	// failures are so many in a row.
	failures int
	watched  map[key]*watched
}

// news is what a link tells: of a service (has; refused: why the server doesn't tell; gone: it
// isn't followed any more), of a group's list (group), that all is told (caught), or that the
// connection failed (failed).
type news struct {
	namespace string

	key     key
	has     *hosted
	first   bool // the first answer on a connection
	refused error
	gone    bool

	group string
	left  int // services beyond the limit

	caught bool
	failed error
}

// watched is a service that is followed.
type watched struct {
	// listed: it is in the last list; answered: the server has answered about it on this
	// connection, told: what there is, empty: nothing, since when.
	listed, answered, told, empty bool
	since                         time.Time
	// asking: it is being asked for, or waits for that; heard counts what the server told unasked.
	asking bool
	heard  int
	// due is when it is asked for again.
	due time.Time
	// read are its instances, by their text: most of what is told is as it was.
	read map[string]*instance
}

// run follows the namespace until ctx ends.
func (k *link) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := k.session(ctx)
		if ctx.Err() != nil {
			return
		}
		k.login.renew()
		err = fmt.Errorf("%s: %w", k.config.servers[k.at].grpc, err)
		k.failures++
		k.at = (k.at + 1) % len(k.config.servers)
		k.tell(ctx, news{failed: err})
		if sdk.Sleep(ctx, k.pause()) != nil {
			return
		}
	}
}

// firstRetry is how long it takes until something is tried again that failed once.
const firstRetry = 250 * time.Millisecond

// pause is how long nothing is tried: twice as long each time that all servers have failed, up to a
// half less.
func (k *link) pause() time.Duration {
	d := firstRetry << min((k.failures-1)/len(k.config.servers), 20)
	if d > k.config.MaxRetry || d <= 0 {
		d = k.config.MaxRetry
	}
	return d - rand.N(d/2+1)
}

func (k *link) tell(ctx context.Context, n news) {
	n.namespace = k.namespace
	select {
	case k.news <- n:
	case <-ctx.Done():
	}
}

// session is what there is of one connection.
type session struct {
	*link
	conn    *connection
	answers chan answer
	asking  sync.WaitGroup
	// waiting are services to be asked for, running questions for them and for lists.
	waiting []key
	running int
	// lists are what the last question for each group's list came to; absent: none has come yet.
	// listing are those on their way.
	lists   map[string]error
	listing int
	beating bool
	caught  bool
}

// answer is one to a question of a session: for a group's list, for a service, for a sign of life
// (beat), or for hearing of a service no more (left).
type answer struct {
	group string
	list  *listing

	key   key
	heard int
	info  *serviceInfo

	beat, left bool
	err        error
}

// beatEvery is how often a server is asked for a sign of life: it closes connections of which it
// hears nothing for 20 s.
const beatEvery = 5 * time.Second

// session follows the namespace on one connection, until that ends. An error says why.
func (k *link) session(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &session{link: k, answers: make(chan answer), lists: map[string]error{}}
	defer s.asking.Wait()
	defer cancel()
	var err error
	if s.conn, err = connect(ctx, k.config, k.config.servers[k.at], k.login, k.namespace); err != nil {
		return err
	}
	defer s.conn.close()
	for name, w := range k.watched { // whatever the lists say: a server that was started anew has forgotten some
		*w = watched{asking: true}
		s.waiting = append(s.waiting, name)
	}
	s.list(ctx)
	return s.follow(ctx)
}

func (s *session) follow(ctx context.Context) error {
	beat, list := time.NewTicker(beatEvery), time.NewTicker(s.config.Interval)
	look := time.NewTicker(max(min(s.config.Refresh/20, s.config.Interval), 50*time.Millisecond))
	defer beat.Stop()
	defer list.Stop()
	defer look.Stop()
	for {
		s.start(ctx)
		s.catchUp(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case info, open := <-s.conn.heard:
			if !open {
				return s.conn.why
			}
			s.hear(ctx, info)
		case a := <-s.answers:
			if err := s.answered(ctx, a); err != nil {
				return err
			}
		case <-beat.C:
			if !s.beating {
				s.beating = true
				s.ask(ctx, func() answer {
					return answer{beat: true, err: s.conn.beat(ctx)}
				})
			}
		case <-list.C:
			s.list(ctx)
		case now := <-look.C:
			s.refresh(now)
		}
	}
}

// ask asks in a goroutine of its own.
func (s *session) ask(ctx context.Context, do func() answer) {
	s.asking.Go(func() {
		a := do()
		select {
		case s.answers <- a:
		case <-ctx.Done():
		}
	})
}

// start asks for services that wait, so many at once.
func (s *session) start(ctx context.Context) {
	for s.running < s.config.Limits.Requests && len(s.waiting) > 0 {
		name := s.waiting[0]
		s.waiting = s.waiting[1:]
		w := s.watched[name]
		if w == nil { // gone meanwhile
			continue
		}
		s.running++
		heard := w.heard
		s.ask(ctx, func() answer {
			info, err := s.conn.subscribe(ctx, name, true)
			return answer{key: name, heard: heard, info: info, err: err}
		})
	}
}

// want has a service asked for.
func (s *session) want(name key, w *watched) {
	if !w.asking {
		w.asking = true
		s.waiting = append(s.waiting, name)
	}
}

// refresh has those asked for whose time has come: what the server was to tell may be lost.
func (s *session) refresh(now time.Time) {
	for name, w := range s.watched {
		if now.After(w.due) {
			s.want(name, w)
		}
	}
}

// list asks for all lists, unless they are on their way.
func (s *session) list(ctx context.Context) {
	if s.listing > 0 {
		return
	}
	for _, group := range s.config.Groups {
		s.listing++
		s.ask(ctx, func() answer {
			l, err := s.conn.list(ctx, s.namespace, group)
			return answer{group: group, list: l, err: err}
		})
	}
}

// catchUp tells once that the server has told of everything.
func (s *session) catchUp(ctx context.Context) {
	if s.caught || len(s.lists) < len(s.config.Groups) {
		return
	}
	for _, w := range s.watched {
		if !w.answered {
			return
		}
	}
	s.caught, s.failures = true, 0
	s.tell(ctx, news{caught: true})
}

// answered takes an answer. An error ends the connection: the server can't be asked, or refuses
// everything.
func (s *session) answered(ctx context.Context, a answer) error {
	no := (*refusal)(nil)
	if a.err != nil && (!errors.As(a.err, &no) || no.code == unregistered || no.code == starting) {
		return a.err
	}
	switch {
	case a.beat:
		s.beating = false
	case a.left:
	case a.list != nil || a.group != "":
		return s.listed(ctx, a)
	default:
		s.told(ctx, a)
	}
	return nil
}

// told takes an answer about a service.
func (s *session) told(ctx context.Context, a answer) {
	s.running--
	w := s.watched[a.key]
	if w == nil {
		return
	}
	now := time.Now()
	w.asking = false
	w.due = now.Add(s.config.Refresh - rand.N(s.config.Refresh/4+1))
	if a.err != nil {
		if no := (*refusal)(nil); errors.As(a.err, &no) && no.code == tooLarge {
			// What the server told of it unasked would end the connection.
			s.leave(ctx, a.key)
		}
		w.due, w.answered = now.Add(s.config.Interval), true
		s.idle(w, true, now)
		s.tell(ctx, news{key: a.key, refused: a.err})
		return
	}
	if w.heard == a.heard { // otherwise it told something newer meanwhile
		s.handle(ctx, a.key, w, a.info, now)
	}
}

// hear takes what the server tells unasked.
func (s *session) hear(ctx context.Context, info *serviceInfo) {
	name := key{s.namespace, info.Group, strings.TrimPrefix(info.Name, info.Group+"@@")}
	if w := s.watched[name]; w != nil {
		w.heard++
		s.handle(ctx, name, w, info, time.Now())
	}
}

func (s *session) handle(ctx context.Context, name key, w *watched, info *serviceInfo, now time.Time) {
	var has *hosted
	has, w.read = info.hosted(w.read, s.config.Limits.Instances)
	empty := has.empty()
	if len(s.config.Clusters) > 0 {
		has.instances = slices.DeleteFunc(has.instances, func(i *instance) bool {
			return !instances.Match(s.config.Clusters, i.Cluster)
		})
	}
	first := !w.told
	w.answered, w.told = true, true
	s.idle(w, empty, now)
	s.tell(ctx, news{key: name, has: has, first: first})
}

// idle notes whether a service has nothing.
func (s *session) idle(w *watched, empty bool, now time.Time) {
	if empty && !w.empty {
		w.since = now
	}
	w.empty = empty
}

// listed takes a group's list: follows what is new, and no more what is neither listed nor has
// anything for a while.
func (s *session) listed(ctx context.Context, a answer) error {
	s.listing--
	s.lists[a.group] = a.err
	if a.err != nil {
		for _, group := range s.config.Groups {
			if err, ok := s.lists[group]; !ok || err == nil {
				s.tell(ctx, news{group: a.group, refused: a.err})
				return nil
			}
		}
		return fmt.Errorf("the services of namespace %s can't be listed: %w", s.namespace, a.err)
	}
	there, left := make(map[string]bool, len(a.list.names)), 0
	for _, name := range a.list.names {
		if name == "" || !s.config.Services.Select(name) {
			continue
		}
		there[name] = true
		k := key{s.namespace, a.group, name}
		switch w := s.watched[k]; {
		case w != nil:
			w.listed = true
		case len(s.watched) >= s.config.Limits.Services:
			left++
		default:
			w = &watched{listed: true}
			s.watched[k] = w
			s.want(k, w)
		}
	}
	s.tell(ctx, news{group: a.group, left: left})
	if a.list.whole {
		s.prune(ctx, a.group, there)
	}
	return nil
}

func (s *session) prune(ctx context.Context, group string, there map[string]bool) {
	for k, w := range s.watched {
		if k.group != group || there[k.name] {
			continue
		}
		w.listed = false
		if !w.answered || !w.empty || w.asking || time.Since(w.since) < s.config.Keep {
			continue
		}
		delete(s.watched, k)
		s.tell(ctx, news{key: k, gone: true})
		s.leave(ctx, k)
	}
}

// leave has the server tell no more of a service.
func (s *session) leave(ctx context.Context, k key) {
	s.ask(ctx, func() answer {
		_, err := s.conn.subscribe(ctx, k, false)
		return answer{left: true, err: err}
	})
}

// listing are the services of a group; whole: there are no others.
type listing struct {
	names []string
	whole bool
}

const (
	// pageSize is how many services are asked for at once, mostPages how many pages there may be.
	pageSize, mostPages = 1000, 1000
	// listTries is how often a list is asked for whose pages don't fit together, since something
	// came or went meanwhile.
	listTries = 3
)

// list asks for the services of a group, sorted.
func (c *connection) list(ctx context.Context, namespace, group string) (*listing, error) {
	var out listing
	for range listTries {
		var all, last []string
		count, size := "", 0
		for page := 1; page <= mostPages; page++ {
			var got names
			err := c.ask(ctx, serviceList, map[string]any{
				"module": "naming", "namespace": namespace, "groupName": group, "serviceName": "", "selector": "",
				"pageNo": page, "pageSize": pageSize,
			}, &got)
			if err != nil {
				return nil, err
			}
			all, count = append(all, got.Names...), string(got.Count)
			for _, name := range got.Names {
				size += len(name)
			}
			if size > c.config.Limits.MessageBytes {
				return nil, &refusal{tooLarge, "limits.messageBytes: the names of services are larger together"}
			}
			if len(got.Names) < pageSize || slices.Equal(got.Names, last) { // the same page again and again is none
				break
			}
			last = got.Names
		}
		slices.Sort(all)
		out.names = slices.Compact(all)
		if out.whole = count == fmt.Sprint(len(out.names)); out.whole {
			break
		}
	}
	return &out, nil
}

// subscribe asks for a service and has the server tell what changes of it, or not any more.
func (c *connection) subscribe(ctx context.Context, k key, on bool) (*serviceInfo, error) {
	var got pushed
	err := c.ask(ctx, subscribe, map[string]any{
		"module": "naming", "namespace": k.namespace, "groupName": k.group, "serviceName": k.name,
		"clusters": "", "subscribe": on,
	}, &got)
	if err == nil && got.Service == nil && on {
		err = errNoService
	}
	return got.Service, err
}
