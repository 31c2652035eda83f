package guard

import (
	"strings"
	"testing"
)

// The credentials here are made up, and built from parts, so that no scanner
// of repositories takes them for leaked ones.
func TestSecrets(t *testing.T) {
	j := strings.Join
	hits := map[string]string{
		"aws-access-key":  j([]string{"AK", "IAQ3EGU7CTX2VLNK5W"}, ""),
		"github-token":    j([]string{"gh", "p_1234567890abcdefghijABCDEFGHIJ123456"}, ""),
		"gitlab-token":    j([]string{"glp", "at-x8Kq2mZpL0vRt7Yw3NbD"}, ""),
		"slack-token":     j([]string{"xo", "xb-123456789012-abcdefGHIJKL0987654321"}, ""),
		"anthropic-key":   j([]string{"sk-a", "nt-api03-Zk3vQ9xL2mP7rT5wY8bN"}, ""),
		"openai-key":      j([]string{"sk-pr", "oj-Zk3vQ9xL2mP7rT5wY8bNc4Gd6Hf1Js0Ka"}, ""),
		"google-key":      j([]string{"AI", "zaSyD4kQ9xL2mP7rT5wY8bNc4Gd6Hf1Js0KvB"}, ""),
		"jwt":             j([]string{"ey", "JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.ey", "JzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"}, ""),
		"private-key":     j([]string{"-----BEGIN RSA ", "PRIVATE KEY-----"}, ""),
		"url-password":    j([]string{"postgres://app:s3cr", "3tP4ss@db.internal/x"}, ""),
		"assigned-secret": j([]string{"pass", `word = "hV7kQ2mZpL0vRt"`}, ""),
		"bearer-token":    j([]string{"Authorization: Be", "arer Zk3vQ9xL2mP7rT5wY8bNc4Gd6Hf1Js0Ka"}, ""),
		"slack-webhook":   j([]string{"https://hooks.slack.com/services/T0", "1ABCDEF/B01ABCDEF/abcdefGHIJKL0987654321"}, ""),
	}
	for rule, text := range hits {
		got := Secrets([]byte("first line\nsee " + text + " there\n"))
		if len(got) != 1 || got[0].Rule != rule || got[0].Line != 2 {
			t.Errorf("%s: %+v", rule, got)
		}
	}
	for _, text := range []string{"**pass" + "word**: xK9mQ2vL5pT8", "`pass" + "word`: `xK9mQ2vL5pT8wq`", "| pass" + "word | xK9mQ2vL5pT8wq |"} {
		if got := Secrets([]byte(text)); len(got) != 1 {
			t.Errorf("%q: %+v", text, got)
		}
	}
	for _, text := range []string{
		"", "123e4567-e89b-12d3-a456-426614174000", "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
		"sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"AKIAIOSFODNN7EXAMPLE", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "password: changeme", "password = ${DB_PASSWORD}", "token: <your token here>",
		"the password is in the safe", "tokens: 12000", "secret: none", "![](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA)",
		"https://example.org/path?x=1", "task-sk-list-of-things-that-are-not-keys-at-all-really", "api_key: YOUR_API_KEY",
		"api_key_rotation: documented-in-the-runbook", "token: memory/semantic/auth-v2.md", "password: 1Password/Infra-2024", "secret: k8s/prod-db-credentials2",
		"task-sk-my-long-branch-name-with-number-12345-abcdefgh", "sk-feature-add-user-login-page-2024-redesign-v2", "| token | description_of_1thing |",
	} {
		if got := Secrets([]byte(text)); len(got) != 0 {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
