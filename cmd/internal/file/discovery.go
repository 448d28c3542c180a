package file

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/discovery"
	"github.com/vxswitch/vxswitch/discovery/etcd"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/setting/conf"
)

// Discovery says who the node is among others that find each other, and where it finds them. All segments with the tunnel take part.
type Discovery struct {
	discovery.Config
	Etcd *etcd.Config `json:"etcd,omitzero"` // lists VTEPs, beside servers or in their place; default none
}

// Check returns the errors in the section as [setting.Errors].
func (d *Discovery) Check() error {
	w := setting.Of("discovery: Config")
	w.Add("", d.Config.Check())
	if d.Etcd != nil {
		w.Add("Etcd", d.Etcd.Check())
	} else if len(d.Servers)+len(d.Neighbours) == 0 {
		w.Wrong("Servers", nil, "servers, neighbours or etcd are required, else the node finds nobody")
	}
	return w.Err()
}

// tunnelOf returns the place of the tunnel that a section names, unless that has failed, and adds an error if there is none.
func (c *Config) tunnelOf(r *conf.Report, key, name string) (i int, ok bool) {
	if r.Failed(key) {
		return 0, false
	}
	if i = slices.IndexFunc(c.Tunnels, func(t node.Tunnel) bool { return t.Name == name }); i < 0 {
		r.Fail(key, name, "no such tunnel")
	}
	return i, i >= 0
}

// discovered tests what the section says of the node's part.
func (c *Config) discovered(r *conf.Report, d *Discovery) {
	i, ok := c.tunnelOf(r, "discovery.tunnel", d.Tunnel)
	if !ok {
		return
	}
	t := &c.Tunnels[i]
	if t.Type.Bare() {
		r.Fail("discovery.tunnel", d.Tunnel, "tunnels[%d] must carry Ethernet, as those of type vxlan and gpe do", i)
	}
	if d.Local != t.Local && d.Local != t.Local6 && !r.Failed("discovery.local") {
		r.Fail("discovery.local", d.Local, "must be an address of tunnels[%d], such as %v", i, t.Local)
	}
	if port := cmp.Or(d.Port, discovery.DefaultPort); port == t.AddrPort().Port() && !r.Failed("discovery.port") {
		r.Fail("discovery.port", port, "is that of tunnels[%d] already", i)
	}
}

// CheckFiles returns as [setting.Errors] which files of etcd cannot be read. That of keys is read when the section is carried out.
func (d *Discovery) CheckFiles() error {
	w := setting.Of("discovery: Config")
	if d.Etcd != nil {
		w.Add("Etcd", d.Etcd.CheckFiles())
	}
	return w.Err()
}

// Restarts reports whether a Speaker cannot change to another section while it runs.
func (d *Discovery) Restarts(next *Discovery) bool {
	return d.Config.Restarts(&next.Config) || !reflect.DeepEqual(d.Etcd, next.Etcd)
}

// New makes the Speaker of the section, with other settings that a file does not have.
func (d *Discovery) New(n discovery.Node, set func(*discovery.Config)) (*discovery.Speaker, error) {
	c := d.Config
	if d.Etcd != nil {
		r, err := etcd.New(d.Etcd)
		if err != nil {
			return nil, err
		}
		c.Registry = r
	}
	set(&c)
	return discovery.New(n, &c)
}
