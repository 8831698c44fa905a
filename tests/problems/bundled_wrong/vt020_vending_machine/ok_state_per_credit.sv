// Right: one state for each credit and a table of sums.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic [1:0] coin,
  input  logic       cancel,
  output logic       vend,
  output logic [3:0] change,
  output logic [3:0] credit
);

  reg [3:0] sum;

  always @*
    case (coin)
      2'b00: sum = credit;
      2'b01: sum = credit + 4'd1;
      2'b10: sum = credit + 4'd2;
      default: sum = credit + 4'd5;
    endcase

  wire enough = (sum[3] | (sum[2] & sum[1]));

  always @(posedge clk) begin
    vend <= ~reset & ~cancel & enough;
    credit <= (reset | cancel | enough) ? 4'd0 : sum;
    if (reset)       change <= 4'd0;
    else if (cancel) change <= sum;
    else if (enough) change <= sum + 4'b1010;
    else             change <= 4'd0;
  end

endmodule
