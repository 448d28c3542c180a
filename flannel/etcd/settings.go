package etcd

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/vxswitch/vxswitch/setting"
)

// Settings are a Config as other control planes have it in their files. The zero value is etcd on this host, without TLS.
type Settings struct {
	Endpoints []string `json:"endpoints,omitempty"` // URLs of etcd's members, http or https; default "http://127.0.0.1:2379"
	Username  string   `json:"username,omitzero"`   // name of a user in etcd; default none
	Password  string   `json:"-"`

	PasswordFile string `json:"passwordFile,omitzero"` // file with the password of that user, which is read again for each attempt to connect; default none

	CertFile string `json:"certFile,omitzero"` // the client's certificate, a PEM file that is read again for each connection; default none
	KeyFile  string `json:"keyFile,omitzero"`  // its key, likewise
	CAFile   string `json:"caFile,omitzero"`   // certificates that sign those of the members, a PEM file; default those of the system

	TLS *tls.Config `json:"-"` // if not nil, instead of the files

	Timeout   time.Duration `json:"timeout,omitzero"`   // of each call, at least 100 ms; default "10s"
	KeepAlive time.Duration `json:"keepAlive,omitzero"` // probes of a connection from which nothing comes, at least 100 ms; default "5s"
}

func (s *Settings) config() *Config {
	return &Config{
		Endpoints: s.Endpoints, Username: s.Username, Password: s.Password, PasswordFile: s.PasswordFile,
		CertFile: s.CertFile, KeyFile: s.KeyFile, CAFile: s.CAFile, TLS: s.TLS, Timeout: s.Timeout, KeepAlive: s.KeepAlive,
	}
}

// Dial makes a client as the function [Dial] does.
func (s *Settings) Dial(ctx context.Context) (*Client, error) { return Dial(ctx, s.config()) }

// Check returns the errors in the settings as [setting.Errors].
func (s *Settings) Check() error {
	w := setting.Of("etcd: Settings")
	w.Add("", s.config().Check())
	return w.Err()
}

// CheckFiles returns as [setting.Errors] which files cannot be read.
func (s *Settings) CheckFiles() error {
	w := setting.Of("etcd: Settings")
	w.Add("", s.config().CheckFiles())
	return w.Err()
}
