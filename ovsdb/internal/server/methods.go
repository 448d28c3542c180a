package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vxswitch/vxswitch/ovsdb/internal/store"
)

const noTxn = `"00000000-0000-0000-0000-000000000000"` // as ovsdb-server says it of a database that is not clustered

// handle carries out a message. An error ends the session.
func (x *session) handle(ctx context.Context, m *message) error {
	if m.Method == nil {
		return nil // a reply, of a probe
	}
	var params []json.RawMessage
	if err := json.Unmarshal(m.Params, &params); err != nil || params == nil {
		return errors.New("a request without an array of params")
	}
	if len(m.ID) > maxIDs {
		return fmt.Errorf("a request whose id has more than %d bytes", maxIDs)
	}
	if len(m.ID) == 0 || string(m.ID) == "null" {
		if *m.Method == "cancel" && len(params) == 1 {
			x.cancel(params[0])
		}
		return nil
	}
	switch *m.Method {
	case "echo":
		x.reply(m.ID, m.Params)
		return nil
	case "list_dbs":
		x.reply(m.ID, []byte(`["`+x.s.db.Schema.Name+`"]`))
		return nil
	case "set_db_change_aware":
		x.reply(m.ID, []byte("{}"))
		return nil
	}
	x.s.mu.Lock() // until the reply is queued: what changes then is told after it
	defer x.s.mu.Unlock()
	result, e := x.ask(ctx, *m.Method, m.ID, params)
	switch {
	case e == errMethod || e == errMonitor:
		x.refuse(m.ID, e.Details)
	case e != nil:
		x.refuse(m.ID, e)
	case result != nil:
		x.reply(m.ID, result)
	}
	return nil
}

var (
	errMethod  = &store.Error{Details: "unknown method"}
	errMonitor = &store.Error{Details: "unknown monitor"}
)

// ask carries out a request. Without a result, the reply comes later. It is called with the server's mu.
func (x *session) ask(ctx context.Context, method string, id json.RawMessage, params []json.RawMessage) ([]byte, *store.Error) {
	switch method {
	case "lock", "steal", "unlock":
		return x.lock(method, params)
	case "monitor_cancel":
		return x.unmonitor(params)
	case "monitor_cond_change":
		return x.remonitor(params)
	case "get_schema", "transact", "monitor", "monitor_cond", "monitor_cond_since":
	default:
		return nil, errMethod
	}
	var db string
	if len(params) == 0 || json.Unmarshal(params[0], &db) != nil {
		return nil, store.Syntax("%s request params must begin with <db-name>", method)
	}
	if db != x.s.db.Schema.Name {
		return nil, &store.Error{Code: "unknown database", Details: fmt.Sprintf("%s request specifies unknown database %.60s", method, db)}
	}
	switch method {
	case "get_schema":
		return x.s.db.Schema.Text, nil
	case "transact":
		return x.transact(ctx, id, params[1:])
	}
	return x.monitor(method, params[1:])
}

// key returns JSON without space.
func key(v json.RawMessage) (string, bool) {
	var b bytes.Buffer
	err := json.Compact(&b, v)
	return b.String(), err == nil && b.Len() <= maxIDs
}

func (x *session) lock(method string, params []json.RawMessage) ([]byte, *store.Error) {
	var name any
	if len(params) == 1 {
		json.Unmarshal(params[0], &name)
	}
	lock, ok := store.IsID(name)
	if !ok || len(lock) > maxIDs {
		return nil, store.Syntax("%s request params must be <id>", method)
	}
	s := x.s
	if method == "unlock" {
		if !s.own(x, lock) {
			return nil, store.Syntax(`unlock: "unlock" without "lock" or "steal"`)
		}
		x.locks--
		s.unlock(x, lock)
		return []byte("{}"), nil
	}
	if s.own(x, lock) {
		return nil, store.Syntax(`must issue "unlock" before new "%s"`, method)
	}
	if x.locks == maxLocks {
		return nil, store.Exhausted("a session has at most %d locks", maxLocks)
	}
	x.locks++
	list := s.locks[lock]
	switch {
	case len(list) == 0 || method == "lock":
		s.locks[lock] = append(list, x)
	default:
		list[0].notify("stolen", lock)
		s.locks[lock] = append([]*session{x}, list...)
	}
	return fmt.Appendf(nil, `{"locked":%t}`, s.locks[lock][0] == x), nil
}

var forms = map[string]store.Form{"monitor": store.Update, "monitor_cond": store.Update2, "monitor_cond_since": store.Update3}

func (x *session) monitor(method string, params []json.RawMessage) ([]byte, *store.Error) {
	form := forms[method]
	if n := len(params); n != 2 && !(n == 3 && form == store.Update3) { // the third is the last transaction that it knows
		return nil, store.Syntax("%s request has %d params after <db-name>", method, len(params))
	}
	id, ok := key(params[0])
	if !ok {
		return nil, store.Syntax("a monitor ID of more than %d bytes", maxIDs)
	}
	s := x.s
	if x.monitors[id] != nil {
		return nil, store.Syntax("duplicate monitor ID")
	}
	if len(x.monitors) == maxMonitors {
		return nil, store.Exhausted("a session has at most %d monitors", maxMonitors)
	}
	m, e := s.db.NewMonitor(form, params[1])
	if e != nil {
		return nil, e
	}
	x.monitors[id] = m
	all := m.Initial()
	if form == store.Update3 {
		all = join("[false,", noTxn, ",", string(all), "]")
	}
	return all, nil
}

func (x *session) unmonitor(params []json.RawMessage) ([]byte, *store.Error) {
	if len(params) != 1 {
		return nil, errMonitor
	}
	id, _ := key(params[0])
	if x.monitors[id] == nil {
		return nil, errMonitor
	}
	delete(x.monitors, id)
	return []byte("{}"), nil
}

// remonitor changes the conditions of a monitor, and its ID.
func (x *session) remonitor(params []json.RawMessage) ([]byte, *store.Error) {
	if len(params) != 3 {
		return nil, store.Syntax("monitor_cond_change request has %d params, not 3", len(params))
	}
	id, _ := key(params[0])
	next, ok := key(params[1])
	m := x.monitors[id]
	switch {
	case m == nil:
		return nil, errMonitor
	case !ok:
		return nil, store.Syntax("a monitor ID of more than %d bytes", maxIDs)
	case next != id && x.monitors[next] != nil:
		return nil, store.Syntax("duplicate monitor ID")
	}
	updates, e := m.Change(params[2])
	if e != nil {
		return nil, e
	}
	delete(x.monitors, id)
	x.monitors[next] = m
	x.update(next, m, updates)
	return []byte("{}"), nil
}

// tell tells a client what has changed. It is called with the server's mu.
func (x *session) tell(changes []store.Change) {
	for id, m := range x.monitors {
		x.update(id, m, m.Updates(changes))
	}
}

func (x *session) update(id string, m *store.Monitor, updates []byte) {
	if updates == nil {
		return
	}
	if m.Form() == store.Update3 {
		id = id + "," + noTxn
	}
	x.send(join(`{"id":null,"method":"`, string(m.Form()), `","params":[`, id, `,`, string(updates), `]}`))
}

// transact carries out a transaction. One that waits is tried after each other transaction, until its time is over.
func (x *session) transact(ctx context.Context, id json.RawMessage, ops []json.RawMessage) ([]byte, *store.Error) {
	s, began := x.s, time.Now()
	out := s.transact(ops, x, began)
	if !out.Blocked {
		return out.Reply, nil
	}
	if len(x.pending) == maxPending || x.pending[string(id)] != nil {
		return nil, store.Exhausted("a session has at most %d transactions that wait, each with its own id", maxPending)
	}
	if len(ops) > 0 && !s.reserve(size(ops)) {
		return nil, store.Exhausted("no room for a transaction that waits")
	}
	ctx, cancel := context.WithCancel(ctx)
	x.pending[string(id)] = cancel
	s.running.Add(1)
	go x.await(ctx, id, ops, began, out.Until, s.changed)
	return nil, nil
}

func size(ops []json.RawMessage) (n int) {
	for _, o := range ops {
		n += len(o)
	}
	return n
}

func (x *session) await(ctx context.Context, id json.RawMessage, ops []json.RawMessage, began, until time.Time, changed <-chan struct{}) {
	s := x.s
	defer s.running.Done()
	defer s.release(size(ops))
	for {
		var timeout <-chan time.Time // of the wait that it is at
		if !until.IsZero() {
			timeout = time.After(time.Until(until))
		}
		select {
		case <-ctx.Done():
		case <-changed:
			select {
			case <-ctx.Done():
			case <-time.After(retryPause):
			}
		case <-timeout:
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			delete(x.pending, string(id))
			s.mu.Unlock()
			x.refuse(id, "canceled")
			return
		}
		out := s.transact(ops, x, began)
		if !out.Blocked {
			delete(x.pending, string(id))
			x.reply(id, out.Reply)
			s.mu.Unlock()
			return
		}
		changed, until = s.changed, out.Until
		s.mu.Unlock()
	}
}

func (x *session) cancel(id json.RawMessage) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if cancel := x.pending[string(id)]; cancel != nil {
		cancel()
	}
}
