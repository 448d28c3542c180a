package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

const busySocket = "VXS_BUSY_SOCKET"

// doWorst is TestBusyClient's other process: it hangs up on requests, reads no answers, sends
// half requests, reloads, and takes every connection and stream there is.
func doWorst(socket string) {
	again := func(times int, wait time.Duration, text string) {
		for range times {
			go func() {
				for {
					c, err := net.Dial("unix", socket)
					if err != nil {
						time.Sleep(time.Millisecond)
						continue
					}
					io.WriteString(c, text)
					time.Sleep(wait)
					c.Close()
				}
			}()
		}
	}
	const rest = " HTTP/1.1\r\nHost: node\r\n\r\n"
	again(20, 0, "GET /v1/flood"+rest)
	again(20, time.Second, strings.Repeat("GET /v1/fdb"+rest, 50))
	again(20, time.Second, strings.Repeat("POST /v1/reload"+rest, 50))
	again(20, time.Minute, "GET /v1/monitor"+rest)
	again(40, time.Minute, "GET /v1/fdb HTT")
	fmt.Println("worst")
	time.Sleep(time.Minute)
}

// While one client does its worst, another has its answers within a second, of every kind. So it
// has when the first has gone.
func TestBusyClient(t *testing.T) {
	if socket := os.Getenv(busySocket); socket != "" {
		doWorst(socket)
		return
	}
	r := begin(t, basic(t))
	r.client.Timeout = 5 * time.Second
	most := time.Second
	if fake.Race { // everything takes several times as long
		most *= 4
	}
	ask := func(when string) {
		t.Helper()
		for _, x := range [][2]string{{"GET", "/v1/flood"}, {"GET", "/v1/fdb"}, {"POST", "/v1/reload"}, {"GET", "/v1/monitor"}} {
			took := time.Hour
			for range 3 { // once may be the machine's fault
				begun := time.Now()
				if x[1] == "/v1/monitor" {
					resp := r.open(x[1])
					if resp.Body.Close(); resp.StatusCode != http.StatusOK {
						t.Errorf("%s: %s: %s", when, x[1], resp.Status)
					}
				} else if status, text := r.ask(x[0], x[1], ""); status != http.StatusOK {
					t.Errorf("%s: %s: %d %s", when, x[1], status, text)
				}
				if took = min(took, time.Since(begun)); took <= most {
					break
				}
			}
			if took > most {
				t.Errorf("%s: %s took %v", when, x[1], took)
			}
		}
	}
	other := exec.Command(os.Args[0], "-test.run=^TestBusyClient$")
	other.Env = append(os.Environ(), busySocket+"="+r.socket, "TMPDIR="+t.TempDir())
	out, err := other.StdoutPipe()
	must(t, err)
	must(t, other.Start())
	stop := func() {
		other.Process.Kill()
		other.Wait()
	}
	defer stop()
	io.ReadFull(out, make([]byte, len("worst")))
	time.Sleep(time.Second / 2) // as on a machine where it has been at it for long
	ask("meanwhile")
	stop()
	ask("afterwards")
}
