// Package etcd keeps the VTEPs of package discovery in etcd, beside servers or in their place: each has a key there, which goes 75 s after
// its VTEP has died, and hears of the keys of others at once.
//
//	PREFIX/0/192.0.2.1    the network ID and the address of a VTEP; the value is its name
//
// Whoever may write there can name VTEPs. All that these say still has to be signed with a key of [discovery.Config].KeyFile.
package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/discovery"
	"github.com/vxswitch/vxswitch/discovery/internal/endp"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/setting"
)

// Defaults of a Config.
const (
	DefaultPrefix = "/vxswitch/discovery"
	DefaultTTL    = endp.Age // 75 s, as with servers
)

// Config says where etcd is, and what keys there are.
type Config struct {
	etcd.Settings
	Prefix string        `json:"prefix,omitzero"` // of all keys; default "/vxswitch/discovery"
	TTL    time.Duration `json:"ttl,omitzero"`    // how long a VTEP that has died is listed, full seconds from 2s to an hour; default "75s"
}

// Check returns the errors in the settings as [setting.Errors].
func (c *Config) Check() error {
	w := setting.Of("etcd: Config")
	w.Add("", c.Settings.Check())
	if c.Prefix != "" && (!strings.HasPrefix(c.Prefix, "/") || path.Clean(c.Prefix) != c.Prefix || c.Prefix == "/") {
		w.Want("Prefix", c.Prefix, "a path such as %s", DefaultPrefix)
	}
	if c.TTL != 0 && (c.TTL < 2*time.Second || c.TTL > time.Hour || c.TTL%time.Second != 0) {
		w.Want("TTL", c.TTL, "full seconds from 2s to 1h")
	}
	return w.Err()
}

// A Registry is one in etcd.
type Registry struct{ cfg Config }

// New checks the settings. Join connects.
func New(c *Config) (*Registry, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	return &Registry{*c}, nil
}

var _ discovery.Registry = (*Registry)(nil)

// Join implements [discovery.Registry].
func (r *Registry) Join(ctx context.Context, network uint32, own discovery.VTEP, list func([]discovery.VTEP)) error {
	client, err := r.cfg.Dial(context.WithoutCancel(ctx)) // for the key is removed after ctx is done
	if err != nil {
		return err
	}
	defer client.Close()
	dir := path.Join(cmp.Or(r.cfg.Prefix, DefaultPrefix), fmt.Sprint(network)) + "/"
	key := dir + own.Addr.String()
	ctx, cancel := context.WithCancelCause(ctx)
	var keep sync.WaitGroup
	defer keep.Wait()
	defer cancel(nil)
	keep.Go(func() { cancel(client.Keep(ctx, key, []byte(own.Name), cmp.Or(r.cfg.TTL, DefaultTTL))) })
	err = client.Follow(ctx, []string{dir}, &reader{own: key, list: list})
	return cmp.Or(context.Cause(ctx), err)
}

var errRemoved = errors.New("somebody has removed our key")

// A reader makes lists of keys.
type reader struct {
	own     string
	removed bool // the own key
	list    func([]discovery.VTEP)
	vteps   map[netip.Addr]string
}

// addr returns the VTEP of a key.
func addr(key string) (netip.Addr, error) {
	return netip.ParseAddr(key[strings.LastIndexByte(key, '/')+1:])
}

func (r *reader) Reset() { r.vteps = map[netip.Addr]string{} }

// Put takes a key, unless it is none of a VTEP, or is one too many.
func (r *reader) Put(key string, value []byte) {
	a, err := addr(key)
	if _, there := r.vteps[a]; err != nil || len(value) > endp.MaxName || !there && len(r.vteps) >= endp.MaxClients {
		return
	}
	r.vteps[a] = string(value)
}

func (r *reader) Delete(key string) {
	if a, err := addr(key); err == nil {
		delete(r.vteps, a)
	}
	r.removed = r.removed || key == r.own
}

func (r *reader) Done(context.Context) error {
	if r.removed {
		return errRemoved
	}
	all := make([]discovery.VTEP, 0, len(r.vteps))
	for a, name := range r.vteps {
		all = append(all, discovery.VTEP{Addr: a, Name: name})
	}
	r.list(all)
	return nil
}
