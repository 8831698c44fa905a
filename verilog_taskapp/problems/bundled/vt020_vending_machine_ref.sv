// Reference of vt020_vending_machine: vending machine with change.
module RefModule (
  input  logic       clk,
  input  logic       reset,
  input  logic [1:0] coin,
  input  logic       cancel,
  output logic       vend,
  output logic [3:0] change,
  output logic [3:0] credit
);

  wire [3:0] value = (coin == 2'd3) ? 4'd5 : {2'b00, coin};
  wire [3:0] total = credit + value;

  always_ff @(posedge clk) begin
    vend <= 1'b0;
    change <= 4'd0;
    credit <= 4'd0;
    if (reset)
      credit <= 4'd0;
    else if (cancel)
      change <= total;
    else if (total >= 4'd6) begin
      vend <= 1'b1;
      change <= total - 4'd6;
    end else
      credit <= total;
  end

endmodule
