package node

import (
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A maker makes configurations of few names, numbers and addresses, so that they meet.
type maker struct{ *rand.Rand }

func (m maker) some(n int) bool { return m.IntN(n) == 0 }

func pick[T any](m maker, list ...T) T { return list[m.IntN(len(list))] }

func (m maker) addr(list ...string) netip.Addr { return netip.MustParseAddr(pick(m, list...)) }

func (m maker) peer() netip.Addr {
	return m.addr("192.0.2.7", "192.0.2.8", "192.0.2.9", "192.0.2.10")
}

// peerOf returns a peer of a tunnel.
func (m maker) peerOf(t *Tunnel) netip.Addr {
	if t != nil && t.Local6.IsValid() && m.some(2) {
		return m.addr("2001:db8::7", "2001:db8::8")
	}
	return m.peer()
}

// peerSettings returns some of peers of a tunnel.
func (m maker) peerSettings(t *Tunnel) (list []PeerSetting) {
	for range m.IntN(3) {
		p := PeerSetting{PeerConfig: vtep.PeerConfig{Address: m.peerOf(t), Header: vtep.Header{TTL: vtep.Value(m.IntN(3) * 5), DF: vtep.DF(m.IntN(4))}}}
		if t.Type != encap.TypeIPIP {
			p.Port = pick[uint16](m, 0, 8472)
			p.TxConfig = pick(m, underlay.TxConfig{}, underlay.TxConfig{Checksum: underlay.ChecksumOn}, underlay.TxConfig{SrcPorts: underlay.PortRange{Lo: 40000, Hi: 40099}})
		}
		list = append(list, p)
	}
	return list
}

func (m maker) mac() frame.MAC { return frame.MAC{2, 0, 0, 0, 0, byte(m.IntN(4))} }

// config returns one that is right.
func (m maker) config() *Config {
	for {
		if c := m.try(); c.Check() == nil {
			return c
		}
	}
}

// next returns another one: something quite different, or what there is with a few changes.
func (m maker) next(old *Config) *Config {
	for range 50 * m.IntN(6) {
		c := setting.Clone(old)
		for n := 1 + m.IntN(4); n > 0; n-- {
			m.mutate(c)
		}
		if c.Check() == nil && !reflect.DeepEqual(c, old) {
			return c
		}
	}
	return m.config()
}

// mutate makes one change to what is in a list: two elements exchange one of their fields, or
// their places; one comes, goes, or gets a field of another configuration's.
func (m maker) mutate(c *Config) {
	lists := listsOf(reflect.ValueOf(c).Elem(), nil)
	if len(lists) == 0 {
		return
	}
	list := pick(m, lists...)
	n := list.Len()
	i := m.IntN(n)
	others := slices.DeleteFunc(listsOf(reflect.ValueOf(m.try()).Elem(), nil), func(l reflect.Value) bool { return l.Type() != list.Type() })
	same, fresh := len(others) > 0, list
	if same {
		fresh = pick(m, others...)
	}
	is := list.Type().Elem().Kind() == reflect.Struct && list.Index(0).Field(0).CanSet()
	switch j := m.IntN(n); m.IntN(9) {
	case 0, 1, 2:
		if is {
			f := m.field(list)
			a, b := list.Index(i).Field(f), list.Index(j).Field(f)
			was := reflect.ValueOf(a.Interface())
			a.Set(b)
			b.Set(was)
		}
	case 3:
		reflect.Swapper(list.Interface())(i, j)
	case 4, 5:
		if same && is {
			f := m.field(list)
			list.Index(i).Field(f).Set(fresh.Index(m.IntN(fresh.Len())).Field(f))
		}
	case 6, 7:
		if same {
			list.Set(reflect.Append(list, fresh.Index(m.IntN(fresh.Len()))))
		}
	case 8:
		list.Set(reflect.AppendSlice(list.Slice3(0, i, i), list.Slice(i+1, n)))
	}
}

// field picks a field of a list's structs; unexported ones are the last.
func (m maker) field(list reflect.Value) int {
	x := list.Index(0)
	n := x.NumField()
	for !x.Field(n - 1).CanSet() {
		n--
	}
	return m.IntN(n)
}

// listsOf returns all lists in v that are not empty, each before what is in it.
func listsOf(v reflect.Value, all []reflect.Value) []reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			all = listsOf(v.Elem(), all)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				all = listsOf(v.Field(i), all)
			}
		}
	case reflect.Slice:
		if v.Len() > 0 && v.Type().Elem().Kind() != reflect.Uint8 {
			all = append(all, v)
			for i := range v.Len() {
				all = listsOf(v.Index(i), all)
			}
		}
	}
	return all
}
