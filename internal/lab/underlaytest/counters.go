package underlaytest

import (
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/vxswitch/vxswitch/frame"
)

// counters returns those of an underlay, and on Linux those that the kernel has of its port and of all UDP in the namespace: the last
// column of a port is what found no room in its buffer.
func counters(u Underlay) string {
	var b strings.Builder
	if m := reflect.ValueOf(u).MethodByName("Stats"); m.IsValid() {
		st := m.Call(nil)[0]
		fmt.Fprintf(&b, "%+v\n", st)
		if lost := st.FieldByName("TxLost"); lost.IsValid() {
			for why := range lost.Len() {
				if n := lost.Index(why).Uint(); n > 0 {
					fmt.Fprintf(&b, "%d lost as %v\n", n, frame.Reason(why))
				}
			}
		}
	}
	at := fmt.Sprintf(":%04X ", u.LocalAddr().Port())
	for _, name := range []string{"udp", "udp6", "snmp", "snmp6"} {
		text, _ := os.ReadFile("/proc/thread-self/net/" + name)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, at) || strings.HasPrefix(line, "Udp:") || strings.HasPrefix(line, "Udp6") {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}
