package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/vishvananda/netlink"

	"github.com/vxswitch/vxswitch/api"
)

// validAttachments is the key of those that the runtime has. Without it all would be taken for left.
const validAttachments = "cni.dev/valid-attachments"

// gc deletes what is left of attachments that the runtime does not have any more.
func gc(ctx context.Context, a *skel.CmdArgs) error {
	c, err := readConfig(a.StdinData)
	if err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(a.StdinData, &all); all[validAttachments] == nil {
		return invalid("%s: required for GC; must be a list", validAttachments)
	}
	valid := map[string]bool{}
	for _, x := range c.ValidAttachments {
		valid[portName(x.ContainerID, x.IfName)] = true
	}
	node := c.daemon()
	ports, err := again(ctx, func() ([]api.Port, error) { return node.Ports(ctx) })
	if away(err) {
		err = nil // it has none
	}
	if err != nil {
		err = failed(err)
	}
	for _, p := range ports {
		if p.Owner == c.owner() && !valid[p.Name] {
			err = also(err, node.detach(ctx, p.Name))
		}
	}
	names, unlisted := c.links()
	err = also(err, unlisted)
	for _, name := range names {
		if !valid[name] {
			err = also(err, deleteLink(name))
		}
	}
	return also(err, c.ipamIfAble(a, invoke.DelegateGC))
}

// links returns the devices of the network on the host, by name.
func (c *config) links() (names []string, err error) {
	list, err := netlink.LinkList()
	for _, l := range list {
		if strings.HasPrefix(l.Attrs().Alias, c.alias()) {
			names = append(names, l.Attrs().Name)
		}
	}
	return names, err
}
