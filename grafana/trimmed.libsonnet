// A text block without its last newline. std.rstripChars takes milliseconds for each of them.
function(text)
  if std.endsWith(text, '\n') then std.substr(text, 0, std.length(text) - 1) else text
