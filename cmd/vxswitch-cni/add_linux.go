package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	cniversion "github.com/containernetworking/cni/pkg/version"
)

// device returns the interface that a command is about.
func (c *config) device(a *skel.CmdArgs) *device {
	alias := c.alias() + a.ContainerID + " " + a.IfName
	return &device{tap: c.tap(), port: portName(a.ContainerID, a.IfName), netns: a.Netns, ifname: a.IfName, alias: alias[:min(len(alias), maxAlias)]}
}

const maxAlias = 255 // of the kernel

// alias is how the aliases of the network's devices begin.
func (c *config) alias() string { return c.owner() + " " }

// add attaches a container: addresses, interface, port of the node, and then the interface comes up. An error undoes what was done.
func add(ctx context.Context, a *skel.CmdArgs) (_ types.Result, err error) {
	c, err := checkedConfig(a.StdinData)
	if err != nil {
		return nil, err
	}
	result, err := c.prev()
	if err != nil {
		return nil, err
	}
	if result == nil {
		result = &current.Result{CNIVersion: current.ImplementedSpecVersion}
	}
	var undo []func() error
	defer func() {
		if err == nil {
			return
		}
		slices.Reverse(undo)
		for _, f := range undo {
			err = also(err, f())
		}
	}()
	d, node := c.device(a), c.daemon()
	if err := inside(a.Netns, d.absent); err != nil {
		return nil, err // before IPAM is asked: to undo that would free the address of an attachment that is there
	}
	s, err := node.segment(ctx, c)
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() error { return c.ipam(a, invoke.DelegateDel) })
	addresses, err := c.addresses(ctx, a)
	if err != nil {
		return nil, err
	}
	if d.mac, err = c.mac(); err != nil {
		return nil, err
	}
	d.mtu = s.mtu
	if err := d.make(); err != nil {
		return nil, err
	}
	undo = append(undo, d.delete)
	if err := inside(a.Netns, func() error { return d.setAddresses(addresses.IPs) }); err != nil {
		return nil, err
	}
	undo = append(undo, func() error {
		ctx, stop := undoing()
		defer stop()
		return node.detach(ctx, d.port)
	})
	if err := node.attach(ctx, c, d.port, a.Netns, d.mtu); err != nil {
		return nil, err
	}
	if err := d.up(addresses); err != nil {
		return nil, err
	}
	c.join(result, addresses, d)
	return inVersion(result, a.StdinData)
}

// inVersion returns a result in the form of the specification of a configuration. Those before 0.3.0 have none without an address.
func inVersion(r *current.Result, config []byte) (types.Result, error) {
	v, err := new(cniversion.ConfigDecoder).Decode(config)
	if err != nil {
		return nil, err
	}
	x, err := r.GetAsVersion(v)
	if err != nil {
		return nil, types.NewError(types.ErrIncompatibleCNIVersion, fmt.Sprintf("cniVersion: %q: %v", v, err), "")
	}
	return x, nil
}

// join adds what was made to a result.
func (c *config) join(to, addresses *current.Result, d *device) {
	if d.host != nil {
		to.Interfaces = append(to.Interfaces, &current.Interface{Name: d.port, Mac: d.host.Attrs().HardwareAddr.String(), Mtu: d.mtu})
	}
	at := len(to.Interfaces)
	to.Interfaces = append(to.Interfaces, &current.Interface{Name: d.ifname, Mac: d.made.Attrs().HardwareAddr.String(), Mtu: d.mtu, Sandbox: d.netns})
	for _, ip := range addresses.IPs {
		ip.Interface = current.Int(at)
		to.IPs = append(to.IPs, ip)
	}
	to.Routes = append(to.Routes, addresses.Routes...)
	if !addresses.DNS.IsEmpty() {
		to.DNS = addresses.DNS
	}
	if !c.DNS.IsEmpty() {
		to.DNS = c.DNS
	}
}

// addresses asks the IPAM plugin for those of a container. Without one there are none.
func (c *config) addresses(ctx context.Context, a *skel.CmdArgs) (*current.Result, error) {
	if c.IPAM.Type == "" {
		return &current.Result{}, nil
	}
	r, err := invoke.DelegateAdd(ctx, c.IPAM.Type, a.StdinData, nil)
	if err != nil {
		return nil, c.ipamError(err)
	}
	x, err := current.NewResultFromResult(r)
	if err == nil && len(x.IPs) == 0 {
		err = errors.New("it returned no address")
	}
	if err != nil {
		return nil, c.ipamError(err)
	}
	return x, nil
}

// undoing returns a context for an undo, which has time although the command has none left.
func undoing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// ipam runs a command of the IPAM plugin that has no result, perhaps as an undo.
func (c *config) ipam(a *skel.CmdArgs, command func(context.Context, string, []byte, invoke.Exec) error) error {
	if c.IPAM.Type == "" {
		return nil
	}
	ctx, stop := undoing()
	defer stop()
	if err := command(ctx, c.IPAM.Type, a.StdinData, nil); err != nil {
		return c.ipamError(err)
	}
	return nil
}

// ipamError says which plugin an error is of, and keeps its code.
func (c *config) ipamError(err error) error {
	if e, ok := errors.AsType[*types.Error](err); ok {
		return types.NewError(e.Code, fmt.Sprintf("ipam.type %s: %s", c.IPAM.Type, e.Msg), e.Details)
	}
	return types.NewError(types.ErrInternal, fmt.Sprintf("ipam.type %s: %v", c.IPAM.Type, err), "")
}

// also adds a second error to a first one, whose code stays.
func also(err, second error) error {
	switch {
	case second == nil:
		return err
	case err == nil:
		return second
	}
	e, ok := errors.AsType[*types.Error](err)
	if !ok {
		e = types.NewError(types.ErrInternal, err.Error(), "")
	}
	details := e.Details
	if details != "" {
		details += "; "
	}
	return types.NewError(e.Code, e.Msg, details+second.Error())
}

// del detaches a container. What is gone already is no error.
func del(ctx context.Context, a *skel.CmdArgs) error {
	c, err := readConfig(a.StdinData)
	if err != nil {
		return err
	}
	d := c.device(a)
	err = also(c.daemon().detach(ctx, d.port), d.delete())
	return also(err, c.ipam(a, invoke.DelegateDel)) // the address is free once nobody has it
}
