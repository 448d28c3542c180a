package etcd

import (
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	c := (Config{Prefix: "/a//b/"}).full()
	if c.Prefix != "/a/b" || len(c.Endpoints) != 1 || c.TTL != 24*time.Hour || c.Timeout != DefaultTimeout || c.KeepAlive != DefaultKeepAlive {
		t.Errorf("%+v", c)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	s, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	for want, c := range map[string]Config{
		`etcd: Config.Endpoints: http://10.0.0.1: must be URLs such as http://127.0.0.1:2379, with a port`: {Endpoints: []string{"http://10.0.0.1"}},
		`etcd: Config.Endpoints: http://10.0.0.1:2379 http://10.0.0.2:2379: must be URLs`:                  {Endpoints: []string{"http://10.0.0.1:2379 http://10.0.0.2:2379"}},
		`etcd: Config.Endpoints: http://10.0.0.1:99999: must be URLs`:                                      {Endpoints: []string{"http://10.0.0.1:99999"}},
		`etcd: Config.Endpoints: http://me:xxxxx@10.0.0.1:2379: must be`:                                   {Endpoints: []string{"http://me:secret@10.0.0.1:2379"}},
		`etcd: Config.Endpoints: http://10.0.0.1:2379/v3: must be`:                                         {Endpoints: []string{"http://10.0.0.1:2379/v3"}},
		`etcd: Config.Endpoints: 127.0.0.1:2379: must be URLs such as http://127.0.0.1:2379`:               {Endpoints: []string{"127.0.0.1:2379"}},
		`etcd: Config.Prefix: /: must be a path such as /coreos.com/network`:                               {Prefix: "/"},
		`etcd: Config.TTL: 1s: must be full seconds from 2s to 8760h0m0s, or 0 for 24h0m0s`:                {TTL: time.Second},
		`etcd: Config.Timeout: 1ms: must be 100ms or longer, or 0 for the default`:                         {Timeout: time.Millisecond},
		`etcd: Config.Username: "": it is needed with a password`:                                          {Password: "x"},
	} {
		if _, err := New(&c); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), strings.ReplaceAll(want, `"`, "")) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
