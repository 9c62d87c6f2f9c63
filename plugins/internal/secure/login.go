package secure

import (
	"os"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Login is who asks a server, as configs have it.
type Login struct {
	Username     string `json:"username" doc:"Who asks."`
	Password     string `json:"password" doc:"The password."`
	PasswordFile string `json:"passwordFile" doc:"File with the password; read anew for each question."`
}

// Check reports what is wrong with it, as *sdk.FieldError.
func (l *Login) Check() error {
	switch {
	case l.Password != "" && l.PasswordFile != "":
		return strict.Errorf("passwordFile", "password is given, too; one is enough")
	case l.Username == "" && l.Password+l.PasswordFile != "":
		return strict.Errorf("username", "is required where there is a password")
	}
	return nil
}

// Secret returns the password: that of the file, read anew, where one is named.
func (l *Login) Secret() (string, error) {
	if l.PasswordFile == "" {
		return l.Password, nil
	}
	text, err := os.ReadFile(l.PasswordFile)
	return strings.TrimRight(string(text), "\r\n"), err
}
