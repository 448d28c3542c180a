package ovsdb

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/ovsdb/internal/rpc"
)

// An intent is what an administrator wants: what all controllers carry out.
type intent struct {
	keys  map[string]int     // tunnel_key of Logical_Switches, 0 = none yet
	binds map[binding]string // the Logical_Switch of each
}

// A binding is a place where hosts are.
type binding struct {
	leaf int
	port string
	vlan int
}

// A controller has each database say what the intent is and where the others say that hosts are, as OVN does. Who said so last is right.
type controller struct {
	f      *fabric
	name   string
	locks  bool // it writes where it has the lock
	copies []*copied
	stop   func()

	mu  sync.Mutex
	seq int
}

// A copied is a database as a controller knows it.
type copied struct {
	wire  *wire
	rows  rpc.Tables
	since map[[2]string]int // when a Logical_Switch and MAC came to Ucast_Macs_Local
	ours  bool
	dirty bool
	kick  chan struct{} // dirty is true
	r     *rand.Rand
}

func newController(f *fabric, name string, locks bool) *controller {
	c := &controller{f: f, name: name, locks: locks}
	for i, l := range f.leaves {
		c.copies = append(c.copies, &copied{wire: newWire(l.db), since: map[[2]string]int{}, kick: make(chan struct{}, 1), r: rand.New(rand.NewPCG(f.seed, uint64(len(name)*100+i)))})
	}
	return c
}

// start runs the controller, which knows nothing yet.
func (c *controller) start() {
	if c.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, d := range c.copies {
		d.rows, d.since = nil, map[[2]string]int{}
	}
	for i := range c.copies {
		running.Go(func() {
			for ctx.Err() == nil {
				c.serve(ctx, i)
				pause(ctx, time.Second)
			}
		})
	}
	c.stop = func() {
		cancel()
		running.Wait()
		c.stop = nil
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// serve uses a connection with a database.
func (c *controller) serve(ctx context.Context, i int) {
	d := c.copies[i]
	conn, err := d.wire.dial(ctx)
	if err != nil {
		return
	}
	client := rpc.New(conn)
	running, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- client.Run(running) }()
	defer func() {
		cancel()
		<-done
		c.mu.Lock()
		d.ours = false
		c.mu.Unlock()
	}()
	fresh := rpc.Tables{}
	columns := map[string][]string{
		"Physical_Switch": {"name", "ports"}, "Physical_Port": {"name", "vlan_bindings"}, "Logical_Switch": {"name", "tunnel_key"},
		"Physical_Locator": {"dst_ip"}, "Physical_Locator_Set": {"locators"},
		"Ucast_Macs_Local": {"MAC", "ipaddr", "logical_switch", "locator"}, "Ucast_Macs_Remote": {"MAC", "ipaddr", "logical_switch", "locator"},
		"Mcast_Macs_Local": {"MAC", "logical_switch", "locator_set"}, "Mcast_Macs_Remote": {"MAC", "logical_switch", "locator_set"},
	}
	if client.Monitor(ctx, database, columns, func(t rpc.Tables) { c.heard(d, fresh, t) }) != nil {
		return
	}
	if c.locks && client.Lock(ctx, "controller", func(ours bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		d.ours = ours
		d.look()
	}) != nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-done:
			done <- err
			return
		case <-d.kick:
		}
		pause(ctx, time.Duration(50+d.r.IntN(200))*time.Millisecond)
		for _, ops := range c.plan(i) {
			if c.locks {
				ops = append([]rpc.Op{{"op": "assert", "lock": "controller"}}, ops...)
			}
			within, cancel := context.WithTimeout(ctx, 10*time.Second)
			if _, err := client.Transact(within, database, ops...); err != nil {
				c.mu.Lock()
				d.look()
				c.mu.Unlock()
			}
			cancel()
		}
	}
}

// heard takes over what a database says.
func (c *controller) heard(d *copied, db, t rpc.Tables) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, rows := range t {
		if db[name] == nil {
			db[name] = map[string]map[string]any{}
		}
		for id, r := range rows {
			if db[name][id] = r; r == nil {
				delete(db[name], id)
			}
		}
	}
	d.rows = db
	was := d.since
	d.since = map[[2]string]int{}
	for _, id := range slices.Sorted(maps.Keys(db["Ucast_Macs_Local"])) {
		r := db["Ucast_Macs_Local"][id]
		k := [2]string{d.network(r), word(r["MAC"])}
		if at, known := was[k]; known {
			d.since[k] = at
		} else if d.since[k] == 0 {
			c.seq++
			d.since[k] = c.seq
		}
	}
	c.all()
}

// look has a database looked at.
func (d *copied) look() {
	d.dirty = true
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// all has all databases looked at.
func (c *controller) all() {
	for _, d := range c.copies {
		d.look()
	}
}

func word(v any) string { s, _ := v.(string); return s }

// refs returns what a value refers to.
func refs(v any) (ids []string) {
	l, _ := v.([]any)
	if len(l) != 2 {
		return nil
	}
	if l[0] == "uuid" {
		return []string{word(l[1])}
	}
	all, _ := l[1].([]any)
	for _, x := range all {
		ids = append(ids, refs(x)...)
	}
	return ids
}

func first(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}

// network returns the name of the Logical_Switch of a row.
func (d *copied) network(r map[string]any) string {
	return word(d.rows["Logical_Switch"][first(refs(r["logical_switch"]))]["name"])
}

// place returns the addresses that a column of a row refers to.
func (d *copied) place(r map[string]any) string {
	ids := refs(r["locator"])
	if set := first(refs(r["locator_set"])); set != "" {
		ids = refs(d.rows["Physical_Locator_Set"][set]["locators"])
	}
	var ips []string
	for _, id := range ids {
		ips = append(ips, word(d.rows["Physical_Locator"][id]["dst_ip"]))
	}
	slices.Sort(ips)
	return strings.Join(ips, " ")
}

// A line is what a row of a MAC says.
type line struct{ network, mac, ip, at string }

func (d *copied) lines(table string) map[string]line {
	all := map[string]line{}
	for id, r := range d.rows[table] {
		all[id] = line{d.network(r), word(r["MAC"]), word(r["ipaddr"]), d.place(r)}
	}
	return all
}

// wanted returns what the others say for database i.
func (c *controller) wanted(i int) (ucast, mcast map[line]bool) {
	ucast, mcast = map[line]bool{}, map[line]bool{}
	at := map[string][]string{}
	for j, d := range c.copies {
		if j == i {
			continue
		}
		for _, l := range d.lines("Mcast_Macs_Local") {
			at[l.network] = append(at[l.network], l.at)
		}
		for _, l := range d.lines("Ucast_Macs_Local") {
			k := [2]string{l.network, l.mac}
			newer := func(o *copied) bool { return o.since[k] > d.since[k] }
			if !slices.ContainsFunc(c.copies, newer) {
				ucast[l] = true
			}
		}
	}
	for network, list := range at {
		slices.Sort(list)
		mcast[line{network: network, mac: "unknown-dst", at: strings.Join(slices.Compact(list), " ")}] = true
	}
	return ucast, mcast
}

// plan returns the transactions that database i needs.
func (c *controller) plan(i int) (list [][]rpc.Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.copies[i]
	if !d.dirty || c.locks && !d.ours {
		return nil
	}
	d.dirty = false
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	want := &c.f.intent
	p := planner{d: d, id: map[string]any{}}
	for _, id := range slices.Sorted(maps.Keys(d.rows["Logical_Switch"])) {
		r := d.rows["Logical_Switch"][id]
		name := word(r["name"])
		key, wanted := want.keys[name]
		if !wanted {
			list = append(list, []rpc.Op{{"op": "delete", "table": "Logical_Switch", "where": is(id)}})
			continue
		}
		p.id[name] = []any{"uuid", id}
		if !same(r["tunnel_key"], tunnelKey(key)) {
			p.op("update", "Logical_Switch", id, rpc.Op{"tunnel_key": tunnelKey(key)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want.keys)) {
		if p.id[name] == nil {
			p.id[name] = p.insert("Logical_Switch", rpc.Op{"name": name, "tunnel_key": tunnelKey(want.keys[name]), "replication_mode": "source_node"})
		}
	}
	p.bind(i, want)
	ucast, mcast := c.wanted(i)
	p.macs("Ucast_Macs_Remote", ucast)
	p.macs("Mcast_Macs_Remote", mcast)
	if len(p.ops) > 0 {
		list = append([][]rpc.Op{p.ops}, list...)
	}
	return list
}

func tunnelKey(n int) any {
	if n == 0 {
		return []any{"set", []any{}}
	}
	return n
}

// same reports whether values are the same in JSON.
func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func is(id string) []any { return []any{[]any{"_uuid", "==", []any{"uuid", id}}} }

// A planner collects the operations of a transaction.
type planner struct {
	d   *copied
	ops []rpc.Op
	id  map[string]any // of Logical_Switches by name, and Physical_Locators by address
}

func (p *planner) op(what, table, id string, row rpc.Op) {
	op := rpc.Op{"op": what, "table": table, "where": is(id)}
	if row != nil {
		op["row"] = row
	}
	p.ops = append(p.ops, op)
}

func (p *planner) insert(table string, row rpc.Op) any {
	name := fmt.Sprint("row", len(p.ops))
	p.ops = append(p.ops, rpc.Op{"op": "insert", "table": table, "uuid-name": name, "row": row})
	return []any{"named-uuid", name}
}

// bind writes vlan_bindings.
func (p *planner) bind(i int, want *intent) {
	for id, r := range p.d.rows["Physical_Port"] {
		pairs := []any{}
		for _, vlan := range vlans {
			if name := want.binds[binding{i, word(r["name"]), vlan}]; name != "" {
				pairs = append(pairs, []any{vlan, p.id[name]})
			}
		}
		if !same(r["vlan_bindings"], []any{"map", pairs}) {
			p.op("update", "Physical_Port", id, rpc.Op{"vlan_bindings": []any{"map", pairs}})
		}
	}
}

// macs makes a table of MACs what is wanted. Of rows that say the same the first stays, whoever wrote it.
func (p *planner) macs(table string, want map[line]bool) {
	want = maps.Clone(want)
	lines := p.d.lines(table)
	for _, id := range slices.Sorted(maps.Keys(lines)) {
		if l := lines[id]; want[l] {
			delete(want, l)
		} else {
			p.op("delete", table, id, nil)
		}
	}
	for l := range want {
		if p.id[l.network] == nil || l.at == "" {
			continue // one that is not to be, or that is not known whole
		}
		row := rpc.Op{"MAC": l.mac, "ipaddr": l.ip, "logical_switch": p.id[l.network]}
		var at []any
		for ip := range strings.SplitSeq(l.at, " ") {
			at = append(at, p.locator(ip))
		}
		if table == "Mcast_Macs_Remote" {
			row["locator_set"] = p.insert("Physical_Locator_Set", rpc.Op{"locators": []any{"set", at}})
		} else {
			row["locator"] = at[0]
		}
		p.insert(table, row)
	}
}

func (p *planner) locator(ip string) any {
	for id, r := range p.d.rows["Physical_Locator"] {
		if word(r["dst_ip"]) == ip {
			return []any{"uuid", id}
		}
	}
	if p.id[ip] == nil {
		p.id[ip] = p.insert("Physical_Locator", rpc.Op{"dst_ip": ip, "encapsulation_type": "vxlan_over_ipv4"})
	}
	return p.id[ip]
}
