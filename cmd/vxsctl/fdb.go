package main

import (
	"context"
	"strconv"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
)

// fdb shows or changes FDBs.
func (s *session) fdb(ctx context.Context, w *words) error {
	op := w.verb("show", api.Add, api.Append, api.Replace, api.Del)
	if op == "" && len(w.rest) > 0 && w.rest[0] != "vni" && w.rest[0] != "dev" {
		return w.wrong("%q: must be one of show, add, append, replace, del", w.rest[0])
	}
	if op == "" || op == "show" {
		return s.show(ctx, w, fdbTable, "vni", "dev")
	}
	if len(w.rest) == 0 || !isMAC(w.rest[0]) {
		return w.wrong("%s: requires a MAC such as 02:00:00:00:00:01, or 00:00:00:00:00:00 for the flood list", op)
	}
	c := api.Change{Op: op, MAC: w.rest[0]}
	w.rest = w.rest[1:]
	keys, err := w.keys("dst", "dev", "vni", "tunnel")
	if err != nil {
		return err
	}
	c.Dst, c.Dev, c.Tunnel = keys["dst"], keys["dev"], keys["tunnel"]
	switch {
	case keys["vni"] == "":
		return w.wrong("%s: requires vni, %s", op, values["vni"])
	case c.Dst != "" && c.Dev != "":
		return w.wrong("%s: takes either dst or dev", op)
	case c.Tunnel != "" && c.Dst == "":
		return w.wrong("%s: tunnel requires dst ADDR", op)
	case c.Dst == "" && c.Dev == "" && op != api.Del:
		return w.wrong("%s: requires dst ADDR or dev PORT", op)
	}
	vni, _ := strconv.ParseUint(keys["vni"], 10, 24) // keys has checked it
	c.VNI = frame.VNI(vni)
	return s.post(ctx, "/v1/fdb", c)
}
