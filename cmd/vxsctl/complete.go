package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
)

// shells has what makes a shell ask vxsctl for words.
//
//go:embed completion
var shells embed.FS

// errOffered ends a command whose last word is being written.
var errOffered = errors.New("words are offered")

// asksFile is the exit status of "vxsctl complete" where the shell should offer files.
const asksFile = 3

// patience for a node that is asked for names while a user waits.
const patience = 500 * time.Millisecond

// offers are the words that may come in place of the last one. The parser of a command line collects them.
type offers struct {
	*session
	ctx  context.Context
	list []string
	file bool
}

// last reports whether the next word is the one that is being written.
func (w *words) last() bool { return w.to != nil && len(w.rest) == 1 }

func (o *offers) add(list ...string) { o.list = append(o.list, list...) }

// value offers the values that there are.
func (o *offers) value(v value) {
	if v.offer != nil {
		v.offer(o)
	}
}

// names offers the names of lists of the configuration, none if no node answers.
func (o *offers) names(lists ...string) {
	text, _, _ := o.Config(o.ctx)
	var all map[string]json.RawMessage
	json.Unmarshal(text, &all)
	for _, list := range lists {
		var named []struct {
			Name string
			VNI  *frame.VNI
		}
		json.Unmarshal(all[list], &named)
		for _, x := range named {
			if x.VNI != nil {
				x.Name = x.VNI.String()
			}
			o.add(x.Name)
		}
	}
}

// protos offers the owners of rows that wait or were refused.
func (o *offers) protos() {
	rows, _ := o.Waiting(o.ctx, nil)
	for _, r := range rows {
		o.add(r.Proto)
	}
}

// evpnSpeakers offers the peers of the section evpn.
func (o *offers) evpnSpeakers() {
	peers, _ := o.EVPNPeers(o.ctx)
	for _, p := range peers {
		if p.Address != "" {
			o.add(p.Address)
		}
	}
}

// bgpSpeakers offers the peers of the section bgp.
func (o *offers) bgpSpeakers() {
	peers, _ := o.BGPPeers(o.ctx)
	for _, p := range peers {
		o.add(p.Address)
	}
}

// complete prints the words that may come in place of the last one, a line each.
func complete(ctx context.Context, args []string, out io.Writer) (status int) {
	if len(args) == 0 {
		return 0
	}
	f := newFlags()
	rest, last := args, args[len(args)-1]
	err := f.Parse(args[:len(args)-1])
	rest = append(slices.Clone(f.Args()), last)
	s := &session{Client: api.NewClient(f.socket), out: io.Discard, notice: io.Discard}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o := &offers{session: s, ctx: ctx}
	switch {
	case len(args) > 1 && strings.TrimLeft(args[len(args)-2], "-") == "socket" && len(rest) == 1:
		return asksFile
	case err != nil:
		return 0
	case len(rest) == 1 && strings.HasPrefix(last, "-"):
		o.add("-socket", "-json", "-version", "-help")
	case len(rest) == 1:
		o.add(strings.Split(objects, ", ")...)
	default:
		s.command(ctx, rest[0], &words{rest: rest[1:], to: o})
	}
	slices.Sort(o.list)
	for _, word := range slices.Compact(o.list) {
		if strings.HasPrefix(word, last) && !strings.ContainsAny(word, "\n\r") {
			fmt.Fprintln(out, word)
		}
	}
	if o.file {
		return asksFile
	}
	return 0
}

// completion prints what a shell needs.
func (s *session) completion(_ context.Context, w *words) error {
	all := []string{"bash", "zsh", "fish"}
	shell := w.verb(all...)
	if shell == "" && len(w.rest) > 0 && w.to == nil {
		return w.not(all...)
	}
	if _, err := w.keys(); err != nil {
		return err
	}
	if shell == "" {
		return w.wrong("requires the name of a shell, bash, zsh or fish")
	}
	text, err := shells.ReadFile("completion/vxsctl." + shell)
	if err == nil {
		_, err = s.out.Write(text)
	}
	return err
}
