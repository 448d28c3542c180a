package node

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/setting"
)

// A step is a configuration, and what another owner says after it.
type step struct {
	cfg      *Config
	add, del []control.Row
}

func (s step) String() string {
	text := strings.ReplaceAll(fmt.Sprintf("%s\n", asText(s.cfg)), "},{", "},\n  {")
	for _, r := range s.add {
		text += fmt.Sprintf("  add %v\n", r)
	}
	for _, r := range s.del {
		text += fmt.Sprintf("  del %v\n", r)
	}
	return text
}

// shrink leaves out of steps what a failure does not need, for half a minute.
func shrink(steps []step, fails func([]step) bool) []step {
	end := time.Now().Add(30 * time.Second)
	for less := true; less; {
		less = false
		try := func(with []step) bool {
			if time.Now().After(end) || !fails(with) {
				return false
			}
			steps, less = with, true
			return true
		}
		for n := max(1, len(steps)/2); n > 0; n /= 2 {
			for i := 0; i+n <= len(steps); {
				if !try(append(append([]step(nil), steps[:i]...), steps[i+n:]...)) {
					i += n
				}
			}
		}
		for i := range steps {
			for k := 0; k < len(steps[i].add)+len(steps[i].del); {
				with := append([]step(nil), steps...)
				if s, a := &with[i], len(steps[i].add); k < a {
					s.add = append(append([]control.Row(nil), s.add[:k]...), s.add[k+1:]...)
				} else {
					s.del = append(append([]control.Row(nil), s.del[:k-a]...), s.del[k-a+1:]...)
				}
				if !try(with) {
					k++
				}
			}
			for k := 0; ; k++ {
				with := append([]step(nil), steps...)
				with[i].cfg = setting.Clone(steps[i].cfg)
				if !leaveOut(with[i].cfg, k) {
					break
				}
				if with[i].cfg.Check() == nil && try(with) {
					k--
				}
			}
		}
	}
	return steps
}

// leaveOut takes the k-th element out of the lists of c, counted through, and then fields that
// are not zero; it reports whether there is one.
func leaveOut(c *Config, k int) bool {
	lists := listsOf(reflect.ValueOf(c).Elem(), nil)
	for _, l := range lists {
		n := l.Len()
		if k < n {
			l.Set(reflect.AppendSlice(l.Slice3(0, k, k), l.Slice(k+1, n)))
			return true
		}
		k -= n
	}
	for _, l := range lists {
		if l.Type().Elem().Kind() != reflect.Struct {
			continue
		}
		for i := range l.Len() {
			for f := 1; f < l.Index(i).NumField(); f++ {
				x := l.Index(i).Field(f)
				if !x.CanSet() || x.IsZero() {
					continue
				}
				if k == 0 {
					x.SetZero()
					return true
				}
				k--
			}
		}
	}
	return false
}
