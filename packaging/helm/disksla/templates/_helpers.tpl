{{- define "disksla.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "disksla.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "disksla.labels" -}}
{{ include "disksla.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "disksla.serviceAccount" -}}
{{- default (ternary (include "disksla.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{- define "disksla.image" -}}
{{- with .Values.image -}}
{{- if not .repository }}
{{- fail "image.repository is not set: no public registry has an image of disksla; build one with packaging/image, push it to your registry, and set image.repository to it" }}
{{- end -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{- define "disksla.security" -}}
securityContext:
  allowPrivilegeEscalation: false
  privileged: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- /* A loop in bash, which the image has: PID 1 ends it at once, and a run by the end of the grace period. */}}
{{- define "disksla.loop" -}}
command:
  - bash
  - -c
  - |
    trap 'exit 0' TERM INT
    while :; do
      disksla detect {{ join " " .arguments }} \
        --output /var/lib/disksla-detect/{{ .file }} || :
      sleep $(( {{ .interval }} + RANDOM % ({{ .interval }} / 5 + 1) )) & wait $!
    done
{{- end }}
