package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

// status reports whether ADD can work.
func status(ctx context.Context, a *skel.CmdArgs) error {
	c, err := checkedConfig(a.StdinData)
	if err != nil {
		return err
	}
	s, err := c.daemon().segment(ctx, c)
	if err != nil {
		return coded(types.ErrPluginNotAvailable, err)
	}
	if err := c.ipamIfAble(a, invoke.DelegateStatus); err != nil {
		return coded(types.ErrPluginNotAvailable, err)
	}
	if len(s.down) > 0 {
		return types.NewError(types.ErrLimitedConnectivity, fmt.Sprintf("vni %d: %s", *c.VNI, strings.Join(s.down, "; ")), "")
	}
	return nil
}

// coded returns an error with one of the codes of STATUS.
func coded(code uint, err error) error {
	e, ok := errors.AsType[*types.Error](err)
	switch {
	case !ok:
		return types.NewError(code, err.Error(), "")
	case e.Code == types.ErrPluginNotAvailable, e.Code == types.ErrLimitedConnectivity:
		return e
	}
	return types.NewError(code, e.Msg, e.Details)
}

// ipamIfAble runs a command that an IPAM plugin of an earlier specification does not know.
func (c *config) ipamIfAble(a *skel.CmdArgs, command func(context.Context, string, []byte, invoke.Exec) error) error {
	err := c.ipam(a, command)
	if e, ok := errors.AsType[*types.Error](err); ok && e.Code == types.ErrInvalidEnvironmentVariables {
		return nil
	}
	return err
}
