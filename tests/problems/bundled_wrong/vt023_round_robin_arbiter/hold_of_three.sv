// Wrong: an owner may hold for three cycles only.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic [3:0] req,
  output logic [3:0] grant,
  output logic       busy
);

  logic [1:0] last;
  logic [2:0] held;
  logic [3:0] winner;
  logic [1:0] index;
  integer     i;

  wire owner_asks  = |(grant & req);
  wire others_ask  = |(~grant & req);
  wire keep = owner_asks && !(held >= 3'd3 && others_ask);

  always_comb begin
    winner = 4'b0000;
    index = last;
    // The nearest index after the last one is looked at last, so that it wins.
    for (i = 4; i >= 1; i = i - 1)
      if (req[(last + i) % 4]) begin
        winner = 4'b0001 << ((last + i) % 4);
        index = (last + i) % 4;
      end
  end

  always_ff @(posedge clk) begin
    if (reset) begin
      grant <= 4'b0000;
      last <= 2'd3;
      held <= 3'd0;
    end else if (keep) begin
      if (held < 3'd4) held <= held + 3'd1;
    end else begin
      grant <= winner;
      last <= index;
      held <= 3'd1;
    end
  end

  assign busy = |grant;

endmodule
